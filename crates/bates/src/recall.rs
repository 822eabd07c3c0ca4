//! Has nodes give up what they hold of a series before a command changes it, and refuses where a node stays silent or a
//! client holds what must not be issued. Must never go on without saying which numbers may come twice.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bates_core::{
    CLIENT_LEASE_SPAN, ClientLease, ClientLeaseFilter, Holder, Lease, Machine, Place, ScopeKey, SeriesName,
    Store,
};
use clap::Args;

use crate::output::{self, counted};

const PAGE: usize = 1_000;

/// Of further holders only their count is shown.
const NAMED_MAX: usize = 5;

/// How long to wait for holders, and whether to go on without them.
#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// How long to wait for nodes on PostgreSQL to give up what they hold of the series
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) wait: u64,

    /// Go on although a node does not answer or a client holds numbers that must not be issued: they may come twice
    #[arg(long)]
    pub(crate) accept_risk: bool,
}

/// Whether the command that recalls a series has written its change.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    Before,
    After,
}

impl Stage {
    const fn told(self) -> &'static str {
        match self {
            Self::Before => {
                "Nothing else was changed: nodes that answered gave up the numbers that they held of the series, which \
                 are gaps now."
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
        concerns: impl Fn(&Place, Lease) -> bool,
    ) -> Result<()> {
        self.recall(machine, series, stage).await?;
        let leases = client_leases(machine, series, concerns).await?;
        if leases.is_empty() {
            return Ok(());
        }
        let (count, name) = (counted(leases.len() as u64, "client lease"), series.as_str());
        let held = listed(leases.iter().map(told_of_lease));
        let is_crashed = |lease: &ClientLease| {
            let age = machine.now().duration_since(lease.at);
            Duration::try_from(age).is_ok_and(|age| age > CLIENT_LEASE_SPAN)
        };
        // A client that was silent for a day counts as crashed, as in the report of gaps.
        if self.accept_risk || leases.iter().all(is_crashed) {
            output::print_note(&format!(
                "{count} of series {name:?} hold numbers that must not be issued; these may come twice:{held}"
            ));
            return Ok(());
        }
        bail!(
            "{count} of series {name:?} hold numbers that must not be issued:{held}\n{} Have these \
             clients close, which returns what they did not use (`bates leases` lists them, with the server running), \
             or go on with --accept-risk: the numbers that they hold may then come twice",
            stage.told()
        )
    }

    async fn recall<S: Store>(&self, machine: &Machine<S>, series: &SeriesName, stage: Stage) -> Result<()> {
        let recalled = machine.recall(series, Duration::from_secs(self.wait)).await?;
        if recalled.silent.is_empty() {
            return Ok(());
        }
        let (nodes, name) = (counted(recalled.silent.len() as u64, "node"), series.as_str());
        let held = listed(recalled.silent.iter().map(told_of_node));
        if self.accept_risk {
            machine.write_off(&recalled).await?;
            output::print_note(&format!(
                "{nodes} did not answer, and may still issue what they hold of series {name:?}; these numbers may come \
                 twice:{held}"
            ));
            return Ok(());
        }
        bail!(
            "{nodes} did not give up numbers of series {name:?} within {} s:{held}\n{} Stop these nodes and run the \
             command again, or go on with --accept-risk: the numbers that they hold may then come twice",
            self.wait,
            stage.told()
        )
    }
}

async fn client_leases<S: Store>(
    machine: &Machine<S>,
    series: &SeriesName,
    concerns: impl Fn(&Place, Lease) -> bool,
) -> Result<Vec<ClientLease>> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let of = ClientLeaseFilter { series: Some(series.clone()) };
        let page = machine.leases(of, after, PAGE).await.context("cannot read the leases of clients")?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.id);
        let holds = |lease: &ClientLease| lease.ranges.iter().any(|range| concerns(&lease.place, *range));
        found.extend(page.into_iter().filter(holds));
    }
}

fn listed(lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().checked_sub(NAMED_MAX + 1).map(|rest| format!("and {} more", rest + 1));
    lines.take(NAMED_MAX).chain(more).flat_map(|line| ["\n  ".to_owned(), line]).collect()
}

pub(crate) fn listed_nodes(silent: &[(SeriesName, Holder)]) -> String {
    let told = |(series, holder): &(SeriesName, _)| {
        format!("series {:?}: {}", series.as_str(), told_of_node(holder))
    };
    listed(silent.iter().map(told))
}

fn told_of_node(holder: &Holder) -> String {
    let range = |(scope, range): &(ScopeKey, Lease)| match scope.as_str() {
        "" => range.to_string(),
        scope => format!("{scope} {range}"),
    };
    let ranges: Vec<String> = holder.ranges.iter().map(range).collect();
    format!(
        "{}, last heard of {} s ago: up to {} in {}",
        holder.name,
        holder.silent_for.as_secs(),
        counted(holder.positions, "number"),
        ranges.join(", ")
    )
}

fn told_of_lease(lease: &ClientLease) -> String {
    let ranges: Vec<String> = lease.ranges.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    format!("{} of {} since {}: {} {}", lease.id, lease.who, lease.at, lease.place.scope, ranges.join(", "))
}
