//! `bates migrate`: creates the tables of a store on PostgreSQL, or prints the SQL.

use anyhow::{Result, bail};
use bates_postgres::PostgresStore;
use clap::Args;

use crate::config::{ConfigArgs, StoreLocation};
use crate::output::Output;

/// Create or migrate the tables of a store on PostgreSQL
///
/// Needs a role that may create tables; `bates serve` does not. Several migrations may run at once. The embedded
/// store needs no migration.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    BATES_STORE=postgres://owner@db/numbers bates migrate\n  \
    BATES_STORE=postgres://owner@db/numbers bates migrate --plan | psql …")]
pub(crate) struct MigrateArgs {
    /// Print the missing SQL, and change nothing
    #[arg(long)]
    plan: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

impl MigrateArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        let StoreLocation::Postgres(address, settings) = &config.store else {
            bail!("the store is a folder, which needs no migration: only a store on PostgreSQL does");
        };
        if self.plan {
            return out.print_bytes(PostgresStore::plan(address, *settings).await?.as_bytes());
        }
        if PostgresStore::migrate(address, *settings).await? {
            writeln!(out, "created or migrated the tables of {address}")
        } else {
            writeln!(out, "{address} is up to date")
        }
    }
}
