//! `bates migrate`: makes a missing store, brings an older one up to date, or prints the SQL.

use anyhow::{Result, bail};
use bates_postgres::PostgresStore;
use bates_sqlite::OpenMode;
use clap::Args;

use crate::config::{ConfigArgs, OpenStore, StoreLocation};
use crate::output::Output;

/// Make the store if it is missing, and bring an older one up to date
///
/// On PostgreSQL it creates the tables, and needs a role that may; `bates serve` does not. Several migrations may run
/// at once. A folder that held a store whose database is gone is refused. To notice a store that was lost with its
/// disk, give the configuration its `store_id`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    BATES_STORE=postgres://owner@db/numbers bates migrate\n  \
    BATES_STORE=postgres://owner@db/numbers bates migrate --plan | psql …\n  \
    BATES_STORE=sqlite:/var/lib/bates/data bates migrate")]
pub(crate) struct MigrateArgs {
    /// Print the missing SQL, and change nothing; for PostgreSQL
    #[arg(long)]
    plan: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

impl MigrateArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        let is_new = match &config.store {
            StoreLocation::Folder(_) if self.plan => {
                bail!("--plan is for PostgreSQL; this store is a folder")
            }
            StoreLocation::Folder(_) => match config.open_store(OpenMode::First).await? {
                OpenStore::Folder(store) => store.is_new(),
                OpenStore::Postgres(_) => false,
            },
            StoreLocation::Postgres(address, settings) if self.plan => {
                let plan = PostgresStore::migration_plan(address, *settings).await?;
                return out.print_bytes(plan.unwrap_or_default().as_bytes());
            }
            StoreLocation::Postgres(..) if config.store_id.is_some() => {
                config.open_store(OpenMode::Existing).await?;
                false
            }
            StoreLocation::Postgres(address, settings) => PostgresStore::migrate(address, *settings).await?,
        };
        let outcome = if is_new { "made the store" } else { "up to date:" };
        writeln!(out, "{outcome} {}", config.store)
    }
}
