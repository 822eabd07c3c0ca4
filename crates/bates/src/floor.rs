//! `bates floor`: raises the cursor of a scope, so that nothing below it is ever issued again.

use std::sync::Arc;

use anyhow::{Context, bail};
use bates_core::{Machine, ScopeName, Store, SystemClock};
use bates_pattern::Date;
use bates_postgres::PostgresStore;
use bates_server::series::Description;
use bates_sqlite::SqliteStore;
use clap::Args;

use crate::config::{Config, ConfigArgs, StoreAt};
use crate::output::{Answer, Output};
use crate::scope;

/// Raise a cursor: no position below it is ever issued again
///
/// For numbers that were given by somebody else, or after an old backup was restored. A cursor that is higher stays
/// where it is; none is ever lowered. The server of a data folder must be stopped. Nodes on PostgreSQL may run: within
/// a second they give up what they hold.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates floor short 50000\n  \
    bates floor document project=PROJ type=9012 250000\n  \
    bates floor invoice 1200 --date 2026-12-31\n  \
    bates floor --accept-timeline")]
pub(crate) struct FloorArgs {
    /// The series
    #[arg(required_unless_present = "accept_timeline")]
    series: Option<String>,

    /// The parameters of the scope as NAME=VALUE, and last the first position that may be issued
    #[arg(required_unless_present = "accept_timeline", value_name = "NAME=VALUE … POSITION")]
    words: Vec<String>,

    /// Let nodes issue again from a PostgreSQL that was restored or failed over, once the cursors are raised
    #[arg(long, conflicts_with_all = ["series", "date"])]
    accept_timeline: bool,

    /// The business date, for a series that starts again by date
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,

    #[command(flatten)]
    config: ConfigArgs,
}

pub(crate) fn run(args: &FloorArgs) -> anyhow::Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(open_and_raise(args))
}

async fn open_and_raise(args: &FloorArgs) -> anyhow::Result<Answer> {
    let config = args.config.load(None, None)?;
    match &config.store {
        StoreAt::Folder(_) if args.accept_timeline => bail!("--accept-timeline is for a store on PostgreSQL"),
        StoreAt::Folder(path) => {
            let store = SqliteStore::open(path, bates_sqlite::Opening::Existing)?;
            raise(store, config, args).await
        }
        StoreAt::Postgres(address, settings) => {
            let opening = bates_postgres::Opening::Stopped;
            let store = PostgresStore::open(address, *settings, opening).await?;
            if args.accept_timeline { accept(&store).await } else { raise(store, config, args).await }
        }
    }
}

async fn accept(store: &PostgresStore) -> anyhow::Result<Answer> {
    let timeline = store.accept().await?;
    let mut out = Output::new();
    out.line(format_args!("timeline {timeline} is accepted: nodes issue again"))?;
    out.flush()?;
    Ok(Answer::Yes)
}

async fn raise(store: impl Store, config: Config, args: &FloorArgs) -> anyhow::Result<Answer> {
    let (floor, parameters) = args.words.split_last().context("a position is missing")?;
    let floor: u64 = floor.parse().with_context(|| format!("{floor:?} is no position"))?;
    let (parameters, series) = (&*scope::pairs(parameters)?, args.series.as_deref().unwrap_or_default());
    let machine = Machine::open(store, config.series, Arc::new(SystemClock)).await?;
    machine.restore(Description::read_spec).await?;
    let Some(entry) = machine.named(series) else { bail!("there is no series {series:?}") };
    if floor > entry.series().end() {
        bail!("position {floor} lies behind {}, the last one of the series", entry.series().end() - 1);
    }
    let name = ScopeName { parameters, date: args.date };
    let before = machine.peek(&entry, name).await?.next;
    let now = machine.raise_floor(&entry, name, floor).await?;
    machine.close().await;
    let mut out = Output::new();
    match before {
        Some(before) if now > before => {
            out.line(format_args!("raised from {before} to {now}: nothing below {now} is issued any more"))?;
        }
        _ => out.line(format_args!("stays at {now}, which is not below {floor}"))?,
    }
    out.flush()?;
    Ok(if now == floor || before.is_none_or(|before| before >= floor) { Answer::Yes } else { Answer::No })
}
