//! Recalls a series from all nodes before a command changes it. Refuses if a node does not answer, or if a client
//! holds numbers that must not be issued. Must never go on without naming the numbers that may be issued twice.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bates_core::{
    Actor, CLIENT_LEASE_TTL, ClientLease, ClientLeaseFilter, Holder, Machine, PositionRange, ScopeId,
    ScopeKey, SeriesName, Store,
};
use clap::Args;

use crate::operator::command_user;
use crate::output::{self, count_of};

const PAGE: usize = 1_000;

/// Max holders listed in a message; the rest are only counted.
const LINES_MAX: usize = 5;

/// How long to wait for holders, and whether to go on without them.
#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// How long to wait for nodes on PostgreSQL to release their numbers
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) wait: u64,

    /// Go on even if a node does not answer or a client holds numbers that must not be issued: these may be issued
    /// twice
    #[arg(long)]
    pub(crate) accept_risk: bool,
}

/// Whether the command has written its change yet.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    Before,
    After,
}

impl Stage {
    const fn describe(self) -> &'static str {
        match self {
            Self::Before => {
                "Nothing else was changed: the nodes that answered released their numbers of the series, which are now \
                 gaps."
            }
            Self::After => "The change is written, but these numbers may still be issued.",
        }
    }
}

impl RecallArgs {
    /// Refuses if a node does not answer in time, or if a client holds positions that must not be issued.
    pub(crate) async fn release<S: Store>(
        &self,
        machine: &Machine<S>,
        series: &SeriesName,
        stage: Stage,
        is_forbidden: impl Fn(&ScopeId, PositionRange) -> bool,
    ) -> Result<()> {
        self.recall(machine, series, stage).await?;
        let leases = client_leases(machine, series, is_forbidden).await?;
        if leases.is_empty() {
            return Ok(());
        }
        let (count, name) = (count_of(leases.len() as u64, "client lease"), series.as_str());
        let held = list_lines(leases.iter().map(describe_lease));
        let is_crashed = |lease: &ClientLease| {
            let age = machine.now().duration_since(lease.at);
            Duration::try_from(age).is_ok_and(|age| age > CLIENT_LEASE_TTL)
        };
        // A client that was silent for a day counts as crashed, as in the gap report.
        if self.accept_risk || leases.iter().all(is_crashed) {
            output::print_note(&format!(
                "clients hold numbers of series {name:?} that must not be issued, in {count}; these may be issued twice:{held}"
            ));
            return Ok(());
        }
        bail!(
            "clients hold numbers of series {name:?} that must not be issued, in {count}:{held}\n{} Close these clients, which \
             returns their unused numbers (`bates leases` lists them while the server runs). With --accept-risk the \
             command goes on, and the numbers that they hold may be issued twice",
            stage.describe()
        )
    }

    async fn recall<S: Store>(&self, machine: &Machine<S>, series: &SeriesName, stage: Stage) -> Result<()> {
        let recalled = machine.recall(series, Duration::from_secs(self.wait)).await?;
        if recalled.silent.is_empty() {
            return Ok(());
        }
        let (nodes, name) = (count_of(recalled.silent.len() as u64, "node"), series.as_str());
        let held = list_lines(recalled.silent.iter().map(describe_node));
        if self.accept_risk {
            machine.write_off(&recalled, Actor::command(&command_user())).await?;
            output::print_note(&format!(
                "{nodes} did not answer; the numbers that they hold of series {name:?} may be issued twice:{held}"
            ));
            return Ok(());
        }
        bail!(
            "{nodes} did not release their numbers of series {name:?} within {} s:{held}\n{} Stop these nodes and run the \
             command again. With --accept-risk the command goes on, and the numbers that they hold may be issued twice",
            self.wait,
            stage.describe()
        )
    }
}

async fn client_leases<S: Store>(
    machine: &Machine<S>,
    series: &SeriesName,
    is_forbidden: impl Fn(&ScopeId, PositionRange) -> bool,
) -> Result<Vec<ClientLease>> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let of = ClientLeaseFilter { series: Some(series.clone()), ..ClientLeaseFilter::default() };
        let page = machine.leases(of, after, PAGE).await.context("cannot read the leases of clients")?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.id);
        let holds =
            |lease: &ClientLease| lease.ranges.iter().any(|range| is_forbidden(&lease.scope_id, *range));
        found.extend(page.into_iter().filter(holds));
    }
}

fn list_lines(lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().checked_sub(LINES_MAX + 1).map(|rest| format!("and {} more", rest + 1));
    lines.take(LINES_MAX).chain(more).flat_map(|line| ["\n  ".to_owned(), line]).collect()
}

pub(crate) fn list_nodes(silent: &[(SeriesName, Holder)]) -> String {
    let describe = |(series, holder): &(SeriesName, _)| {
        format!("series {:?}: {}", series.as_str(), describe_node(holder))
    };
    list_lines(silent.iter().map(describe))
}

fn describe_node(holder: &Holder) -> String {
    let range = |(scope, range): &(ScopeKey, PositionRange)| match scope.as_str() {
        "" => range.to_string(),
        scope => format!("{scope} {range}"),
    };
    let ranges: Vec<String> = holder.ranges.iter().map(range).collect();
    format!(
        "{}, last seen {} s ago: up to {} in {}",
        holder.name,
        holder.silent_for.as_secs(),
        count_of(holder.positions, "number"),
        ranges.join(", ")
    )
}

fn describe_lease(lease: &ClientLease) -> String {
    let ranges: Vec<String> = lease.ranges.iter().take(LINES_MAX).map(ToString::to_string).collect();
    format!(
        "{} of {} since {}: {} {}",
        lease.id,
        lease.caller,
        lease.at,
        lease.scope_id.scope,
        ranges.join(", ")
    )
}
