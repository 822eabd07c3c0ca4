//! Recalls: processes give up their ranges of a series when its cursor is raised or positions are adopted.
//!
//! Each series has an epoch in the store. A recall raises it; a process answers once it holds nothing granted before.
//! Invariant: an answer counts only for the process that sends it, so [`NodeStore::holders`](crate::NodeStore::holders)
//! shows every silent process. A silent process could hand out adopted numbers when it continues, so the caller learns
//! of it, and nothing is assumed.

use std::time::Duration;

use uuid::Uuid;

use crate::audit::Actor;
use crate::machine::Machine;
use crate::operation::{Operation, OperationKind};
use crate::range::PositionRange;
use crate::scope::ScopeKey;
use crate::series::{
    DescriptionChange, MachineError, MachineResult, Promise, PromiseChange, SeriesName, SeriesSpec,
};
use crate::store::{Store, StoreResult};

/// Between two looks at the processes that have not answered.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    pub series: SeriesName,
    /// Ranges granted before this epoch are given up.
    pub epoch: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub node: Uuid,
    /// Host and process, for people.
    pub name: Box<str>,
    /// Time since its last contact with the store.
    pub silent_for: Duration,
    /// Whether it ran on this host and no longer exists.
    pub has_ended: bool,
    /// How many positions it may hold: an upper bound.
    pub positions: u64,
    /// The first of its ranges.
    pub ranges: Vec<(ScopeKey, PositionRange)>,
}

/// The processes that hold ranges granted before an epoch and have not ended. Writes off those that have.
pub(crate) async fn live_holders<S: Store>(
    store: &S,
    series: &SeriesName,
    epoch: u64,
) -> StoreResult<Vec<Holder>> {
    let mut alive = store.holders(series.clone(), epoch).await?;
    let ended = alive.extract_if(.., |holder| holder.has_ended);
    let ended: Vec<Uuid> = ended.map(|holder| holder.node).collect();
    if !ended.is_empty() {
        // These processes are known to have ended: no operator decided it.
        store.write_off(series.clone(), epoch, ended, None).await?;
    }
    Ok(alive)
}

/// How long a change of a promise waits for processes that hold numbers.
const RECALL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct RecallOutcome {
    series: SeriesName,
    epoch: u64,
    /// Processes that have not answered and may still hand out their ranges.
    pub silent: Vec<Holder>,
}

impl<S: Store> Machine<S> {
    /// Has every process give up its ranges of a series, and waits for the answers, at most `wait`. Writes off ended
    /// processes. Does nothing in a stopped store: all processes give up everything before it issues again.
    pub async fn recall(&self, series: &SeriesName, wait: Duration) -> StoreResult<RecallOutcome> {
        let store = self.store();
        let mut recalled = RecallOutcome { series: series.clone(), epoch: 0, silent: Vec::new() };
        let is_stopped = store.check_revision().await.is_err_and(|error| error.is_poisoned());
        if is_stopped || store.holders(series.clone(), u64::MAX).await?.is_empty() {
            return Ok(recalled);
        }
        recalled.epoch = store.recall(series.clone()).await?;
        let deadline = self.elapsed() + wait;
        loop {
            // This process may hold ranges itself.
            store.check_revision().await?;
            self.dispenser.answer_recalls().await?;
            recalled.silent = live_holders(&**store, series, recalled.epoch).await?;
            if recalled.silent.is_empty() || self.elapsed() >= deadline {
                return Ok(recalled);
            }
            self.runtime.sleep(POLL_INTERVAL).await;
        }
    }

    /// Changes the promise of a series, once no process holds numbers granted under the old one. The description must
    /// be changed too.
    pub async fn change_promise(
        &self,
        series: &SeriesName,
        to: Promise,
        actor: Actor<'_>,
    ) -> MachineResult<()> {
        let entry = self.series(series.as_str()).ok_or_else(|| MachineError::Unknown(series.clone()))?;
        SeriesSpec { promise: to, ..entry.spec.clone() }.check()?;
        let operation = self.promise_operation(series, entry.spec.promise, to, actor);
        self.pin_promise(series, PromiseChange { from: entry.spec.promise, to }, None, operation).await
    }

    pub(crate) fn promise_operation(
        &self,
        series: &SeriesName,
        from: Promise,
        to: Promise,
        actor: Actor<'_>,
    ) -> Operation {
        let operation = self.operation(actor, OperationKind::PromiseChanged, Some(series));
        operation.between(Some(from.name()), Some(to.name()))
    }

    pub(crate) async fn pin_promise(
        &self,
        series: &SeriesName,
        change: PromiseChange,
        described: Option<DescriptionChange>,
        operation: Operation,
    ) -> MachineResult<()> {
        let held = |holders| MachineError::Held { series: series.clone(), holders };
        self.recall_all(series, held).await?;
        if !self.store().change_promise(series.clone(), change, described, Some(operation)).await? {
            return Err(MachineError::ChangedMeanwhile(series.clone()));
        }
        self.recall_before_change(series).await
    }

    /// Waits until no process holds numbers granted before the promise of a series was changed. Also called where the
    /// promise stays: an earlier change may have been interrupted here.
    pub(crate) async fn recall_before_change(&self, series: &SeriesName) -> MachineResult<()> {
        self.recall_all(series, |holders| MachineError::StillHeld { series: series.clone(), holders }).await
    }

    async fn recall_all(
        &self,
        series: &SeriesName,
        held: impl FnOnce(Box<str>) -> MachineError,
    ) -> MachineResult<()> {
        let recalled = self.recall(series, RECALL_TIMEOUT).await?;
        if recalled.silent.is_empty() {
            return Ok(());
        }
        let holders: Vec<&str> = recalled.silent.iter().map(|holder| &*holder.name).collect();
        Err(held(holders.join(", ").into()))
    }

    /// Writes off the silent processes: their ranges become uncertain, and they may still hand them out.
    pub async fn write_off(&self, recalled: &RecallOutcome, actor: Actor<'_>) -> StoreResult<()> {
        let RecallOutcome { series, epoch, silent } = recalled;
        let nodes: Vec<Uuid> = silent.iter().map(|holder| holder.node).collect();
        let names: Vec<&str> = silent.iter().map(|holder| &*holder.name).collect();
        let operation = self.operation(actor, OperationKind::NodesWrittenOff, Some(series));
        let operation = operation.between(Some(&names.join(", ")), None);
        self.store().write_off(series.clone(), *epoch, nodes, Some(operation)).await
    }
}
