//! Describes the operations of callers, lists them, and removes old ones.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::{ChainHead, Operation, OperationFilter, OperationKind, OperationRecord};
use crate::audit::{Actor, Channel};
use crate::machine::Machine;
use crate::series::SeriesName;
use crate::store::{Store, StoreResult};

const PRUNE_BATCH: usize = 10_000;

impl<S: Store> Machine<S> {
    /// An operation that happens now, without a state before and after.
    pub fn operation(&self, actor: Actor<'_>, kind: OperationKind, series: Option<&SeriesName>) -> Operation {
        let stamp = actor.stamp(self.runtime.now());
        Operation {
            id: self.runtime.new_id(),
            at: stamp.at,
            caller: stamp.caller,
            channel: stamp.channel,
            kind,
            series: series.cloned(),
            subject: Box::default(),
            before: None,
            after: None,
        }
    }

    /// For a change outside the store.
    pub async fn append_operation(&self, operation: Operation) -> StoreResult<()> {
        self.store().append_operation(operation).await
    }

    /// In the order of their times and ids, after `after`, at most `limit`.
    pub async fn operations(
        &self,
        of: OperationFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<OperationRecord>> {
        self.store().operations(of, after, limit).await
    }

    pub async fn chains(&self) -> StoreResult<Vec<ChainHead>> {
        self.store().chains().await
    }

    /// The records of a chain after a number, at most `limit`.
    pub async fn chain_records(
        &self,
        chain: &str,
        after: u64,
        limit: usize,
    ) -> StoreResult<Vec<OperationRecord>> {
        self.store().chain_records(chain.into(), after, limit).await
    }

    /// Removes old records of every chain, also of hosts that are gone. Returns how many.
    pub async fn prune_operations(&self, retention: Duration) -> StoreResult<u64> {
        let Ok(before) = self.runtime.now().checked_sub(retention) else { return Ok(0) };
        let (mut removed, actor) = (0, Actor { caller: "retention", channel: Channel::Server });
        for ChainHead { chain, .. } in self.store().chains().await? {
            loop {
                let operation = self.operation(actor, OperationKind::RecordsRemoved, None);
                let count = self.store().prune_chain(chain.clone(), before, PRUNE_BATCH, operation).await?;
                removed += count;
                if count < PRUNE_BATCH as u64 {
                    break;
                }
            }
        }
        Ok(removed)
    }
}
