//! The port to the operations log.

use jiff::Timestamp;
use uuid::Uuid;

use super::StoreResult;
use crate::operation::{ChainHead, Operation, OperationFilter, OperationRecord};

/// Other calls take an [`Operation`] too, and write it in the commit of their change, if they change anything.
#[trait_variant::make(Send)]
pub trait OperationStore: Send + Sync + 'static {
    /// Appends an operation to the chain of this host, for a change outside the store. A second call changes nothing.
    async fn append_operation(&self, operation: Operation) -> StoreResult<()>;

    /// Operations in the order of their times and ids, after `after`, at most `limit`.
    async fn operations(
        &self,
        of: OperationFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<OperationRecord>>;

    /// The head of every chain, by name.
    async fn chains(&self) -> StoreResult<Vec<ChainHead>>;

    /// The records of a chain with numbers above `after`, in their order, at most `limit`.
    async fn chain_records(
        &self,
        chain: Box<str>,
        after: u64,
        limit: usize,
    ) -> StoreResult<Vec<OperationRecord>>;

    /// Removes the records of a chain before its first one that is not older than `before`, at most `limit`, and appends
    /// [`ChainHead::append_removal`] to the chain in the same commit. Answers how many it removed.
    async fn prune_chain(
        &self,
        chain: Box<str>,
        before: Timestamp,
        limit: usize,
        operation: Operation,
    ) -> StoreResult<u64>;
}
