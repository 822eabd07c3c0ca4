//! `bates migrate`: the tables of a store on PostgreSQL, created or only shown.

use anyhow::bail;
use bates_postgres::PostgresStore;
use clap::Args;

use crate::config::{ConfigArgs, StoreAt};
use crate::output::{Answer, Output};

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

pub(crate) fn run(args: &MigrateArgs) -> anyhow::Result<Answer> {
    let config = args.config.load(None, None)?;
    let StoreAt::Postgres(address, settings) = &config.store else {
        bail!("the store is a folder, which needs no migration: this is for a store on PostgreSQL");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = Output::new();
    if args.plan {
        if runtime.block_on(PostgresStore::is_missing(address, *settings))? {
            out.bytes(bates_postgres::plan().as_bytes())?;
        }
    } else if runtime.block_on(PostgresStore::migrate(address, *settings))? {
        out.line(format_args!("{address} is a store now"))?;
    } else {
        out.line(format_args!("{address} is up to date"))?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}
