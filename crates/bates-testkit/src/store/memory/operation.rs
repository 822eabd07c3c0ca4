//! The operations log of a store in memory. All processes share one chain.

use bates_core::{ChainHead, Operation, OperationFilter, OperationRecord, OperationStore, StoreError};
use jiff::Timestamp;
use uuid::Uuid;

use super::{Data, MemoryStore};

const CHAIN: &str = "memory";

impl OperationStore for MemoryStore {
    async fn append_operation(&self, operation: Operation) -> Result<(), StoreError> {
        self.data().append(Some(operation));
        Ok(())
    }

    async fn operations(
        &self,
        of: OperationFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<OperationRecord>, StoreError> {
        let key = |record: &OperationRecord| (record.operation.at, record.operation.id);
        let is_wanted =
            |record: &&OperationRecord| of.matches(&record.operation) && Some(key(record)) > after;
        let mut found: Vec<_> = self.data().operations.values().filter(is_wanted).cloned().collect();
        found.sort_by_key(key);
        found.truncate(limit);
        Ok(found)
    }

    async fn chains(&self) -> Result<Vec<ChainHead>, StoreError> {
        Ok(self.data().chains.values().cloned().collect())
    }

    async fn chain_records(
        &self,
        chain: Box<str>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<OperationRecord>, StoreError> {
        Ok(self.data().chain_records(&chain, after, limit))
    }

    async fn prune_chain(
        &self,
        chain: Box<str>,
        before: Timestamp,
        limit: usize,
        operation: Operation,
    ) -> Result<u64, StoreError> {
        let mut data = self.data();
        let old = data.chain_records(&chain, 0, limit).into_iter();
        let old: Vec<_> = old.take_while(|record| record.is_removable(before)).collect();
        let Some(last) = old.last() else { return Ok(0) };
        data.operations.retain(|(of, number), _| *of != chain || *number > last.number);
        let head = data.chains.entry(chain.clone()).or_insert_with(|| ChainHead::new(&chain));
        let removal = head.append_removal(last, operation);
        data.operations.insert((chain, removal.number), removal);
        Ok(old.len() as u64)
    }
}

impl Data {
    pub(super) fn append(&mut self, operation: Option<Operation>) {
        let is_known = |id: Uuid| self.operations.values().any(|record| record.operation.id == id);
        let Some(operation) = operation.filter(|operation| !is_known(operation.id)) else { return };
        let head = self.chains.entry(CHAIN.into()).or_insert_with(|| ChainHead::new(CHAIN));
        let record = head.append(operation);
        self.operations.insert((record.chain.clone(), record.number), record);
    }

    fn chain_records(&self, chain: &str, after: u64, limit: usize) -> Vec<OperationRecord> {
        let records = self.operations.values();
        let records = records.filter(|record| *record.chain == *chain && record.number > after);
        records.take(limit).cloned().collect()
    }
}
