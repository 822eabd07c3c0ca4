//! `bates floor`: raises the cursor of a scope, so that no position below it is issued again.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bates_core::{
    Actor, Machine, Operation, OperationKind, OperationStore as _, Position, PositionRange, Runtime as _,
    ScopeId, ScopeKey, ScopeParams, SeriesEntry, Store, SystemRuntime,
};
use bates_pattern::Date;
use bates_sqlite::OpenMode;
use clap::Args;

use crate::config::{Config, ConfigArgs, OpenStore, StoreLocation};
use crate::floor_all::AllArgs;
use crate::operator::command_user;
use crate::output::{self, Answer, Output};
use crate::recall::{RecallArgs, Stage};
use crate::scope;

/// Raise a cursor, so that no position below it is ever issued again
///
/// Use it for numbers that another system issued, or after an old backup was restored. A cursor that is already
/// higher stays; no cursor is ever lowered. Stop the server of a data folder first. Nodes on PostgreSQL may keep
/// running: they release their numbers of the series, and the command waits for each of them. It refuses if a node
/// does not answer, or if a client holds numbers below the floor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates floor short 50000\n  \
    bates floor document project=PROJ type=9012 250000\n  \
    bates floor invoice 1200 --date 2026-12-31\n  \
    bates floor short 50000 --wait 60\n  \
    bates floor --all --by 100000 --dry-run\n  \
    bates floor --all --by 100000\n  \
    bates floor --accept-timeline\n  \
    bates floor --accept-loss")]
pub(crate) struct FloorArgs {
    /// The series
    #[arg(required_unless_present_any = ["accept_timeline", "accept_loss", "all"])]
    series: Option<String>,

    /// The parameters of the scope as NAME=VALUE, then the first position that may be issued
    #[arg(required_unless_present_any = ["accept_timeline", "accept_loss", "all"], value_name = "NAME=VALUE … POSITION")]
    words: Vec<String>,

    #[command(flatten)]
    all: AllArgs,

    /// Let nodes issue again after PostgreSQL was restored or failed over; raise the cursors first
    #[arg(long, conflicts_with_all = ["series", "date"])]
    accept_timeline: bool,

    /// Let a data folder issue again although commits are missing; raise the cursors first
    #[arg(long, conflicts_with_all = ["series", "date", "accept_timeline"])]
    accept_loss: bool,

    /// The business date, for a series that restarts by date
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,

    /// Go on even if the Redis server of a shared pool is unreachable: its list may hold numbers below the floor
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
        if let Some(all) = self.all.raise(self.without_pools) {
            return all.run(config, out).await;
        }
        self.check_kind(&config.store)?;
        match config.open_store(OpenMode::Stopped).await? {
            OpenStore::Folder(store) if self.accept_loss => {
                let store = Arc::new(store);
                raise_pools(store.clone(), config, self).await?;
                if store.lacks_commits() {
                    // Before the acceptance, which is outside the database: none is without a record.
                    store.append_operation(loss_accepted("missing commits")).await?;
                }
                let outcome = if store.accept_loss()? {
                    "the missing commits are accepted as lost: the store issues again. Their numbers are issued a \
                     second time in every scope that `bates floor` did not raise first"
                } else {
                    "no commits are missing: the store issues as before"
                };
                writeln!(out, "{outcome}")?;
            }
            OpenStore::Postgres(store) if self.accept_timeline => {
                let store = Arc::new(store);
                raise_pools(store.clone(), config, self).await?;
                let timeline = store.accept(Some(loss_accepted("timeline"))).await?;
                writeln!(
                    out,
                    "timeline {timeline} is accepted: nodes issue again. If the database lost commits, their numbers are \
                     issued a second time in every scope that `bates floor` did not raise first"
                )?;
            }
            OpenStore::Folder(store) => return raise(store, config, self, out).await,
            OpenStore::Postgres(store) => return raise(store, config, self, out).await,
        }
        Ok(Answer::Yes)
    }
}

impl FloorArgs {
    fn check_kind(&self, store: &StoreLocation) -> Result<()> {
        match store {
            StoreLocation::Folder(_) if self.accept_timeline => bail!("--accept-timeline is for PostgreSQL"),
            StoreLocation::Postgres(..) if self.accept_loss => bail!("--accept-loss is for a data folder"),
            _ => Ok(()),
        }
    }
}

pub(crate) fn loss_accepted(subject: &str) -> Operation {
    let actor = Actor::command(&command_user()).stamp(SystemRuntime.now());
    let operation = Operation {
        id: SystemRuntime.new_id(),
        at: actor.at,
        caller: actor.caller,
        channel: actor.channel,
        kind: OperationKind::LossAccepted,
        series: None,
        subject: Box::default(),
        before: None,
        after: None,
    };
    operation.on(subject)
}

/// Raises cursors past all that was pushed into pools, before the loss of commits is accepted.
async fn raise_pools(store: Arc<impl Store>, mut config: Config, args: &FloorArgs) -> Result<()> {
    if config.pools.is_empty() && config.offered_pools.is_empty() {
        return Ok(());
    }
    let machine = config.open_machine_of(store).await?;
    raise_past_pools(&machine, args.without_pools).await
}

/// Raises cursors past all that was pushed into pools: programs may have taken numbers of lost commits.
pub(crate) async fn raise_past_pools<S: Store>(machine: &Machine<S>, without_pools: bool) -> Result<()> {
    let registry = machine.registry().clone();
    for entry in registry.entries().filter(|entry| machine.pool_set(entry.series().name()).is_some()) {
        let mut after = None;
        loop {
            let page = machine.stored_pools(entry, after, 1_000).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (scope, _) in page {
                if let Some(to) = empty_pool(machine, entry, &scope, without_pools).await? {
                    machine.raise_scope_floor(entry, &scope, to, Actor::command(&command_user())).await?;
                }
            }
        }
    }
    Ok(())
}

/// Empties the list of a pool; returns the position after the last one ever pushed into it.
pub(crate) async fn empty_pool<S: Store>(
    machine: &Machine<S>,
    entry: &SeriesEntry,
    scope: &ScopeKey,
    without_pools: bool,
) -> Result<Option<u64>> {
    match machine.empty_pool(entry, scope).await {
        Err(error) if without_pools => {
            output::print_note(&format!("the list of {scope} was not emptied: {error}"));
            Ok(None)
        }
        result => result.context(
            "cannot empty the pool of the scope, whose list may hold numbers that must not be issued; with \
             --without-pools the command goes on",
        ),
    }
}

fn floor_past_pool(floor: u64, pushed_to: Option<u64>) -> u64 {
    let Some(to) = pushed_to.filter(|to| *to > floor) else { return floor };
    output::print_note(&format!("the floor is raised to {to}, past all numbers that the pool held"));
    to
}

async fn raise(store: impl Store, mut config: Config, args: &FloorArgs, out: &mut Output) -> Result<Answer> {
    let (floor, parameters) = args.words.split_last().context("missing position")?;
    let invalid = || format!("invalid position {floor:?}: expected a whole number");
    let floor: u64 = floor.parse().with_context(invalid)?;
    let (parameters, series) = (&*scope::pairs(parameters)?, args.series.as_deref().unwrap_or_default());
    let machine = config.open_machine(store).await?;
    let Some(entry) = machine.series(series) else { bail!("unknown series {series:?}") };
    if floor > entry.series().end() {
        bail!("position {floor} is past {}, the last one of the series", entry.series().end() - 1);
    }
    let params = ScopeParams { parameters, date: args.date };
    // Report a mistake in the scope before nodes release anything.
    let before = machine.peek(&entry, params).await?.next.map(Position::value);
    let series = entry.series().name().clone();
    let scope_id = machine.scope_id(&entry, params)?;
    let is_below = |at: &ScopeId, range: PositionRange| *at == scope_id && range.from() < floor;
    args.recall.release(&machine, &series, Stage::Before, is_below).await?;
    // A series with a pool shows no date, so its scope has no period.
    let scope = ScopeKey::new(parameters.iter().copied(), None)?;
    let pushed_to = empty_pool(&machine, &entry, &scope, args.without_pools).await?;
    let floor = floor_past_pool(floor, pushed_to);
    let now = machine.raise_floor(&entry, params, floor, Actor::command(&command_user())).await?;
    // A client may have leased numbers in the meantime.
    args.recall.release(&machine, &series, Stage::After, is_below).await?;
    // A filler may have pushed numbers in the meantime.
    empty_pool(&machine, &entry, &scope, args.without_pools).await?;
    machine.close().await;
    match before {
        Some(before) if now > before => {
            writeln!(out, "{scope_id}: raised from {before} to {now}; no lower position is issued again")?;
        }
        _ => writeln!(out, "{scope_id}: stays at {now}, which is not below {floor}")?,
    }
    // Numbers issued meanwhile may have moved the cursor further than the floor.
    Ok(if now >= floor { Answer::Yes } else { Answer::No })
}
