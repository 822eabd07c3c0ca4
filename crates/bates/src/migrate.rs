//! `bates migrate`: the tables of a store on PostgreSQL, created or only shown.

use anyhow::{Result, bail};
use bates_postgres::PostgresStore;
use clap::Args;

use crate::config::{ConfigArgs, StoreAt};
use crate::output::Output;

/// Create the tables of a store on PostgreSQL if they are missing
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

impl MigrateArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        let StoreAt::Postgres(address, settings) = &config.store else {
            bail!("the store is a folder, which needs no migration: this is for a store on PostgreSQL");
        };
        if self.plan {
            let is_missing = PostgresStore::is_missing(address, *settings).await?;
            return if is_missing { out.bytes(bates_postgres::plan().as_bytes()) } else { Ok(()) };
        }
        let is_new = PostgresStore::migrate(address, *settings).await?;
        writeln!(out, "{address} is {}", if is_new { "a store now" } else { "up to date" })
    }
}
