//! `bates floor`: raises the cursor of a scope, so that nothing below it is ever issued again.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bates_core::{Entry, Lease, Machine, Place, Position, ScopeKey, ScopeName, Store, SystemRuntime};
use bates_pattern::Date;
use bates_sqlite::Opening;
use clap::Args;

use crate::config::{Config, ConfigArgs, OpenStore, PoolOf, StoreAt};
use crate::output::{self, Answer, Output};
use crate::recall::{RecallArgs, Stage};
use crate::scope;
use crate::serve::know_pools;

/// Raise a cursor: no position below it is ever issued again
///
/// For numbers that were given by somebody else, or after an old backup was restored. A cursor that is higher stays
/// where it is; none is ever lowered. The server of a data folder must be stopped. Nodes on PostgreSQL may run: they give
/// up what they hold of the series, and the command waits until each of them has. It refuses where a node does not
/// answer, or a client holds numbers below the floor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates floor short 50000\n  \
    bates floor document project=PROJ type=9012 250000\n  \
    bates floor invoice 1200 --date 2026-12-31\n  \
    bates floor short 50000 --wait 60\n  \
    bates floor --accept-timeline\n  \
    bates floor --accept-loss")]
pub(crate) struct FloorArgs {
    /// The series
    #[arg(required_unless_present_any = ["accept_timeline", "accept_loss"])]
    series: Option<String>,

    /// The parameters of the scope as NAME=VALUE, and last the first position that may be issued
    #[arg(required_unless_present_any = ["accept_timeline", "accept_loss"], value_name = "NAME=VALUE … POSITION")]
    words: Vec<String>,

    /// Let nodes issue again from a PostgreSQL that was restored or failed over, once the cursors are raised
    #[arg(long, conflicts_with_all = ["series", "date"])]
    accept_timeline: bool,

    /// Let a data folder issue again although commits are missing, once the cursors are raised
    #[arg(long, conflicts_with_all = ["series", "date", "accept_timeline"])]
    accept_loss: bool,

    /// The business date, for a series that starts again by date
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,

    /// Go on although the Redis server of a shared pool cannot be asked: its list may give numbers below the floor
    #[arg(long)]
    without_pools: bool,

    #[command(flatten)]
    recall: RecallArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

impl FloorArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let config = self.config.load(None, None)?;
        match &config.store {
            StoreAt::Folder(_) if self.accept_timeline => {
                bail!("--accept-timeline is for a store on PostgreSQL")
            }
            StoreAt::Postgres(..) if self.accept_loss => bail!("--accept-loss is for a data folder"),
            _ => {}
        }
        match config.store.open(Opening::Stopped).await? {
            OpenStore::Folder(store) if self.accept_loss => {
                let store = Arc::new(store);
                raise_past_pools(store.clone(), config, self).await?;
                let told = if store.accept_loss()? {
                    "the commits that are missing are given up: the store issues again. Numbers issued in these commits \
                     come again in every scope that `bates floor` did not raise before"
                } else {
                    "no commits are missing: the store issues as before"
                };
                writeln!(out, "{told}")?;
            }
            OpenStore::Postgres(store) if self.accept_timeline => {
                let store = Arc::new(store);
                raise_past_pools(store.clone(), config, self).await?;
                let timeline = store.accept().await?;
                writeln!(
                    out,
                    "timeline {timeline} is accepted: nodes issue again. If the database lost commits, their numbers come \
                     again in every scope that `bates floor` did not raise before"
                )?;
            }
            OpenStore::Folder(store) => return raise(store, config, self, out).await,
            OpenStore::Postgres(store) => return raise(store, config, self, out).await,
        }
        Ok(Answer::Yes)
    }
}

/// Numbers pushed into a list during the lost commits may have been taken: cursors go past them.
async fn raise_past_pools(store: Arc<impl Store>, config: Config, args: &FloorArgs) -> Result<()> {
    if config.pools.is_empty() {
        return Ok(());
    }
    let machine = Machine::open(store, config.series, Arc::new(SystemRuntime)).await?;
    know_pools(&machine, &config.pools)?;
    for PoolOf { series, .. } in &config.pools {
        let Some(entry) = machine.named(series.as_str()) else { continue };
        let mut after = None;
        loop {
            let page = machine.pools_of(&entry, after, 1_000).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (scope, _) in page {
                if let Some(to) = emptied(&machine, &entry, &scope, args.without_pools).await? {
                    machine.raise_floor_of(&entry, &scope, to).await?;
                }
            }
        }
    }
    Ok(())
}

/// Empties the list of a pool; returns the position past all that were ever pushed into it.
pub(crate) async fn emptied<S: Store>(
    machine: &Machine<S>,
    entry: &Entry,
    scope: &ScopeKey,
    without_pools: bool,
) -> Result<Option<u64>> {
    match machine.empty_pool(entry, scope).await {
        Err(error) if without_pools => {
            output::print_note(&format!("the list of {scope} is as it was: {error}"));
            Ok(None)
        }
        emptied => emptied.context(
            "the pool of the scope cannot be emptied, and its list may give what must not be issued. With \
             --without-pools nobody looks at it",
        ),
    }
}

fn past_what_was_pushed(floor: u64, pushed_to: Option<u64>) -> u64 {
    let Some(to) = pushed_to.filter(|to| *to > floor) else { return floor };
    output::print_note(&format!("the list of its pool had numbers below {to}, which may have been taken"));
    to
}

async fn raise(store: impl Store, mut config: Config, args: &FloorArgs, out: &mut Output) -> Result<Answer> {
    let (floor, parameters) = args.words.split_last().context("a position is missing")?;
    let floor: u64 = floor.parse().with_context(|| format!("{floor:?} is no position"))?;
    let (parameters, series) = (&*scope::pairs(parameters)?, args.series.as_deref().unwrap_or_default());
    let machine = config.machine(store).await?;
    let Some(entry) = machine.named(series) else { bail!("there is no series {series:?}") };
    if floor > entry.series().end() {
        bail!("position {floor} lies behind {}, the last one of the series", entry.series().end() - 1);
    }
    let name = ScopeName { parameters, date: args.date };
    // Report a mistake in the scope before nodes give anything up.
    let before = machine.peek(&entry, name).await?.next.map(Position::value);
    let series = entry.series().name().clone();
    let place = machine.place(&entry, name)?;
    let is_below = |at: &Place, range: Lease| *at == place && range.from() < floor;
    args.recall.release(&machine, &series, Stage::Before, is_below).await?;
    // A series with a pool shows no date.
    let scope = ScopeKey::new(parameters.iter().copied(), None)?;
    let pushed_to = emptied(&machine, &entry, &scope, args.without_pools).await?;
    let floor = past_what_was_pushed(floor, pushed_to);
    let now = machine.raise_floor(&entry, name, floor).await?;
    // A client may have been given numbers in between.
    args.recall.release(&machine, &series, Stage::After, is_below).await?;
    // A filler may have pushed meanwhile.
    emptied(&machine, &entry, &scope, args.without_pools).await?;
    machine.close().await;
    match before {
        Some(before) if now > before => {
            writeln!(out, "{place}: raised from {before} to {now}: nothing below {now} is issued any more")?;
        }
        _ => writeln!(out, "{place}: stays at {now}, which is not below {floor}")?,
    }
    // Numbers issued meanwhile may have moved the cursor further than the floor.
    Ok(if now >= floor { Answer::Yes } else { Answer::No })
}
