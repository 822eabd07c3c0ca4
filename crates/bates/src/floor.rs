//! `bates floor`: raises the cursor of a scope, so that nothing below it is ever issued again.

use std::sync::Arc;

use anyhow::{Context, bail};
use bates_core::{Machine, ScopeName, SystemClock};
use bates_pattern::Date;
use bates_sqlite::{Opening, SqliteStore};
use clap::Args;

use crate::config::ConfigArgs;
use crate::output::{Answer, Output};
use crate::scope;

/// Raise a cursor: no position below it is ever issued again
///
/// For numbers that were given by somebody else, or after an old backup was restored. The server must be
/// stopped. A cursor that is higher stays where it is; none is ever lowered.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates floor short 50000\n  \
    bates floor document project=PROJ type=9012 250000\n  \
    bates floor invoice 1200 --date 2026-12-31")]
pub(crate) struct FloorArgs {
    /// The series
    series: String,

    /// The parameters of the scope as NAME=VALUE, and last the first position that may be issued
    #[arg(required = true, value_name = "NAME=VALUE … POSITION")]
    words: Vec<String>,

    /// The business date, for a series that starts again by date
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,

    #[command(flatten)]
    config: ConfigArgs,
}

pub(crate) fn run(args: &FloorArgs) -> anyhow::Result<Answer> {
    let (position, parameters) = args.words.split_last().context("a position is missing")?;
    let position: u64 = position.parse().with_context(|| format!("{position:?} is no position"))?;
    let parameters = scope::pairs(parameters)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(raise(args, position, &parameters))
}

async fn raise(args: &FloorArgs, floor: u64, parameters: &[(&str, &str)]) -> anyhow::Result<Answer> {
    let config = args.config.load(None, None)?;
    let store = Arc::new(SqliteStore::open(&config.data, Opening::Existing)?);
    let machine = Machine::open(store.clone(), config.series, Arc::new(SystemClock)).await?;
    crate::serve::restore(&machine, &store).await?;
    let Some(entry) = machine.named(&args.series) else { bail!("there is no series {:?}", args.series) };
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
