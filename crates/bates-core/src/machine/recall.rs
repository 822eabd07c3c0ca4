//! A series recalled: every process gives up what it holds of it, before a floor is raised or numbers are adopted.
//!
//! What could go wrong, and why it does not: a process that was stopped hands out adopted numbers when it goes on. So
//! the caller is told which processes have not answered, and nothing is assumed of them.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Machine;
use crate::name::SeriesName;
use crate::recall::Holder;
use crate::store::{Store, StoreError};

/// How often the store is asked who has not answered.
const POLL: Duration = Duration::from_millis(50);

/// What a recall came to.
#[derive(Debug)]
pub struct Recalled {
    series: SeriesName,
    epoch: u64,
    /// Processes that have not answered and may still hand out what they hold.
    pub silent: Vec<Holder>,
}

impl<S: Store> Machine<S> {
    /// Has every process give up what it holds of a series, and waits until all have answered, at most `wait`.
    /// Processes that are known to have ended are written off. Does nothing in a store that has stopped: no process
    /// issues from it until it is accepted, and then all of them give up everything.
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
        let deadline = Instant::now() + wait;
        loop {
            recalled.silent = self.holders_alive(series, recalled.epoch).await?;
            if recalled.silent.is_empty() || Instant::now() >= deadline {
                return Ok(recalled);
            }
            sleep(POLL).await;
        }
    }

    /// Writes off the processes that stayed silent: what they hold is uncertain, and they may still hand it out.
    pub async fn write_off(&self, recalled: &Recalled) -> Result<(), StoreError> {
        let nodes: Vec<Uuid> = recalled.silent.iter().map(|holder| holder.node).collect();
        self.dispenser.store().write_off(recalled.series.clone(), recalled.epoch, nodes).await
    }

    /// The holders that have not ended; the others are written off.
    async fn holders_alive(&self, series: &SeriesName, epoch: u64) -> Result<Vec<Holder>, StoreError> {
        let store = self.dispenser.store();
        let (ended, alive): (Vec<Holder>, Vec<Holder>) =
            store.holders(series.clone(), epoch).await?.into_iter().partition(|holder| holder.has_ended);
        if !ended.is_empty() {
            let nodes = ended.iter().map(|holder| holder.node).collect();
            store.write_off(series.clone(), epoch, nodes).await?;
        }
        Ok(alive)
    }
}
