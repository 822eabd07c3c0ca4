//! `bates backup` and `bates restore`: the embedded store in one file.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bates_sqlite::backup::{self, BackupContent};
use clap::Args;

use crate::config::{Config, ConfigArgs, StoreLocation};
use crate::output::{Output, count_of, group_digits};

/// Write the embedded store to one file, also while a server has it open
///
/// The file holds all that was committed when the backup began. It can be read only by its owner: it holds the keys of
/// shuffled series. A store on PostgreSQL is backed up with `pg_dump`, or with the tools of its provider.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates backup /backup/bates-2026-11-20.db\n  \
    bates backup /backup/bates.db --config /etc/bates/bates.yaml")]
pub(crate) struct BackupArgs {
    /// The file to write; it must not exist
    file: PathBuf,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Make the embedded store from a backup; it issues nothing until its cursors are raised
///
/// Numbers that were issued after the backup are not in it. So the restored store refuses to serve until `bates floor --all` has
/// raised its cursors past all numbers that may have been issued since.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates restore /backup/bates-2026-11-20.db --dry-run\n  \
    bates restore /backup/bates-2026-11-20.db\n  \
    bates floor --all --by 100000")]
pub(crate) struct RestoreArgs {
    /// The file that `bates backup` wrote
    file: PathBuf,

    /// Check the backup and show its content; change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

impl BackupArgs {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        let content = backup::backup(folder(&config)?, &self.file)?;
        writeln!(out, "wrote {}: {}", self.file.display(), describe(&content))
    }
}

impl RestoreArgs {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        let folder = folder(&config)?;
        let content = backup::read(&self.file)?;
        if let Some(expected) = config.store_id.filter(|id| *id != content.identity) {
            bail!(
                "{} is a backup of the store with the id {}, but store_id is {expected}: this is another store",
                self.file.display(),
                content.identity
            );
        }
        if self.dry_run {
            return writeln!(out, "would restore to {}: {}", folder.display(), describe(&content));
        }
        backup::restore(&self.file, folder)?;
        writeln!(out, "restored to {}: {}", folder.display(), describe(&content))?;
        writeln!(
            out,
            "it issues nothing yet: raise its cursors past all numbers issued since, with bates floor --all --by 100000"
        )
    }
}

fn folder(config: &Config) -> Result<&Path> {
    match &config.store {
        StoreLocation::Folder(path) => Ok(path),
        StoreLocation::Postgres(address, _) => bail!(
            "{address} is a PostgreSQL database: back it up with pg_dump or the tools of its provider, and see \
             docs/operations.md for what Bates notices after a restore"
        ),
    }
}

fn describe(content: &BackupContent) -> String {
    let BackupContent { identity, series, scopes, commits, seen_at, bytes } = content;
    let until = seen_at.map_or(String::new(), |seen_at| format!(" of {seen_at:.0}"));
    format!(
        "{} series, {}, up to commit {}{until}; {} bytes; store {identity}",
        group_digits(*series),
        count_of(*scopes, "scope"),
        group_digits(*commits),
        group_digits(*bytes)
    )
}
