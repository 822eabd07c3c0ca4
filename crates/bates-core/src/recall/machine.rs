//! Recalls a series: every process gives up what it holds before a floor is raised or numbers are adopted.
//!
//! A stopped process could hand out adopted numbers when it continues, so the caller learns which processes have not
//! answered, and nothing is assumed about them.

use std::time::Duration;

use uuid::Uuid;

use super::{Holder, POLL, holders_alive};
use crate::machine::Machine;
use crate::series::{MachineError, Promise, PromiseChange, Redescription, SeriesName, SeriesSpec};
use crate::store::{Store, StoreError};

/// How long a change of a promise waits for processes that hold numbers.
const HOLDERS_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Recalled {
    series: SeriesName,
    epoch: u64,
    /// Processes that have not answered and may still hand out what they hold.
    pub silent: Vec<Holder>,
}

impl<S: Store> Machine<S> {
    /// Has every process give up what it holds of a series, and waits for the answers, at most `wait`. Writes off ended
    /// processes. Does nothing in a stopped store: all processes give up everything before it issues again.
    pub async fn recall(&self, series: &SeriesName, wait: Duration) -> Result<Recalled, StoreError> {
        let store = self.dispenser.store();
        let mut recalled = Recalled { series: series.clone(), epoch: 0, silent: Vec::new() };
        if store.watch().await.is_err_and(|error| error.is_poisoned()) {
            return Ok(recalled);
        }
        if store.holders(series.clone(), u64::MAX).await?.is_empty() {
            return Ok(recalled);
        }
        recalled.epoch = store.recall(series.clone()).await?;
        let deadline = self.elapsed() + wait;
        loop {
            // This process may hold ranges itself.
            store.watch().await?;
            self.dispenser.answer_recalls().await?;
            recalled.silent = holders_alive(&**store, series, recalled.epoch).await?;
            if recalled.silent.is_empty() || self.elapsed() >= deadline {
                return Ok(recalled);
            }
            self.runtime.sleep(POLL).await;
        }
    }

    /// Changes the promise of a series, once no process holds numbers granted under the old one. The description must
    /// be changed too.
    pub async fn change_promise(&self, series: &SeriesName, to: Promise) -> Result<(), MachineError> {
        let entry = self.named(series.as_str()).ok_or_else(|| MachineError::Unknown(series.clone()))?;
        SeriesSpec { promise: to, ..entry.spec.clone() }.check()?;
        self.pin_promise(series, PromiseChange { from: entry.spec.promise, to }, None).await
    }

    pub(crate) async fn pin_promise(
        &self,
        series: &SeriesName,
        change: PromiseChange,
        described: Option<Redescription>,
    ) -> Result<(), MachineError> {
        let held = |holders| MachineError::Held { series: series.clone(), holders };
        self.recall_all(series, held).await?;
        if !self.store().change_promise(series.clone(), change, described).await? {
            return Err(MachineError::ChangedMeanwhile(series.clone()));
        }
        self.keep_order(series).await
    }

    /// Waits until no process holds numbers granted before the promise of a series was changed. Also called where the
    /// promise stays: an earlier change may have been interrupted here.
    pub(crate) async fn keep_order(&self, series: &SeriesName) -> Result<(), MachineError> {
        self.recall_all(series, |holders| MachineError::StillHeld { series: series.clone(), holders }).await
    }

    async fn recall_all(
        &self,
        series: &SeriesName,
        held: impl FnOnce(Box<str>) -> MachineError,
    ) -> Result<(), MachineError> {
        let recalled = self.recall(series, HOLDERS_WAIT).await?;
        if recalled.silent.is_empty() {
            return Ok(());
        }
        let holders: Vec<&str> = recalled.silent.iter().map(|holder| &*holder.name).collect();
        Err(held(holders.join(", ").into()))
    }

    /// Writes off the silent processes: what they hold is uncertain, and they may still hand it out.
    pub async fn write_off(&self, recalled: &Recalled) -> Result<(), StoreError> {
        let nodes: Vec<Uuid> = recalled.silent.iter().map(|holder| holder.node).collect();
        self.store().write_off(recalled.series.clone(), recalled.epoch, nodes).await
    }
}
