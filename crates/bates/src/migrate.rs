//! `bates migrate`: the tables of a store on PostgreSQL, made or brought up to date, or only shown.

use anyhow::bail;
use bates_postgres::PostgresStore;
use clap::Args;

use crate::config::{ConfigArgs, StoreAt};
use crate::output::{Answer, Output};

/// Make the tables of a store on PostgreSQL, or bring them up to date
///
/// Needs a role that may create them; serving does not. Several may run at once. The embedded store needs no such
/// step.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    BATES_STORE=postgres://owner@db/numbers bates migrate\n  \
    BATES_STORE=postgres://owner@db/numbers bates migrate --plan | psql …")]
pub(crate) struct MigrateArgs {
    /// Print the SQL that is missing, and change nothing
    #[arg(long)]
    plan: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

pub(crate) fn run(args: &MigrateArgs) -> anyhow::Result<Answer> {
    let config = args.config.load(None, None)?;
    let StoreAt::Postgres(address, settings) = &config.store else {
        bail!("the store is a folder, which needs no migration: this is for a store on PostgreSQL");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = Output::new();
    if args.plan {
        let version = runtime.block_on(PostgresStore::schema_version(address, *settings))?;
        out.bytes(bates_postgres::plan(version).as_bytes())?;
    } else {
        let before = runtime.block_on(PostgresStore::migrate(address, *settings))?;
        match before {
            0 => out.line(format_args!("{address} is a store now"))?,
            before if bates_postgres::plan(before).is_empty() => {
                out.line(format_args!("{address} is up to date"))?;
            }
            before => out.line(format_args!("{address} is brought up to date from version {before}"))?,
        }
    }
    out.flush()?;
    Ok(Answer::Yes)
}
