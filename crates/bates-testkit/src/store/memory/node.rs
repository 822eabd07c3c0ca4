//! The processes of a store in memory, and the ranges that each holds.

use std::time::Duration;

use bates_core::ledger::Request;
use bates_core::{
    Holder, NodeStore, Operation, PositionRange, Recall, ScopeId, ScopeKey, SeriesName, StoreError,
};
use uuid::Uuid;

use super::MemoryStore;

impl NodeStore for MemoryStore {
    async fn recall(&self, series: SeriesName) -> Result<u64, StoreError> {
        let mut data = self.data();
        data.series(&series)?;
        data.recalls += 1;
        let epoch = data.recalls;
        data.series_mut(&series)?.epoch = epoch;
        Ok(epoch)
    }

    async fn recalls(&self) -> Result<Vec<Recall>, StoreError> {
        let data = self.data();
        let Some(node) = data.nodes.get(&self.node.id) else { return Ok(Vec::new()) };
        let answered =
            |series: &SeriesName| node.answered.get(series).copied().unwrap_or(0).max(node.started_at);
        let unanswered = data.series.iter().filter(|(series, row)| row.epoch > answered(series));
        Ok(unanswered.map(|(series, row)| Recall { series: series.clone(), epoch: row.epoch }).collect())
    }

    async fn give_up(
        &self,
        series: SeriesName,
        epoch: Option<u64>,
        unused: Vec<(ScopeKey, PositionRange)>,
    ) -> Result<(), StoreError> {
        let mut data = self.data();
        for (scope, range) in unused {
            let scope_id = ScopeId { series: series.clone(), scope };
            data.decide_and_apply(self, &scope_id, &Request::GiveUp(vec![range])).into_change()?;
        }
        let Some(epoch) = epoch else { return Ok(()) };
        for (_, scope) in data.scopes.iter_mut().filter(|(scope_id, _)| scope_id.series == series) {
            scope.leased.retain(|leased| leased.node != self.node.id || leased.epoch >= epoch);
        }
        if let Some(node) = data.nodes.get_mut(&self.node.id) {
            node.answered.insert(series, epoch);
        }
        Ok(())
    }

    async fn leave(&self) -> Result<(), StoreError> {
        for scope in self.data().scopes.values_mut() {
            scope.leased.retain(|leased| leased.node != self.node.id);
        }
        Ok(())
    }

    async fn holders(&self, series: SeriesName, epoch: u64) -> Result<Vec<Holder>, StoreError> {
        let data = self.data();
        let holders = data.nodes.keys().filter_map(|node| {
            let held = data.scopes.iter().filter(|(scope_id, _)| scope_id.series == series);
            let held = held.flat_map(|(scope_id, scope)| {
                let of_node =
                    scope.leased.iter().filter(|leased| leased.node == *node && leased.epoch < epoch);
                of_node.map(|leased| (scope_id.scope.clone(), leased.range))
            });
            let ranges: Vec<(ScopeKey, PositionRange)> = held.collect();
            (!ranges.is_empty()).then(|| Holder {
                node: *node,
                name: "a process of a test".into(),
                silent_for: Duration::ZERO,
                has_ended: !data.is_alive(*node, self),
                positions: ranges.iter().map(|(_, range)| range.count()).sum(),
                ranges,
            })
        });
        Ok(holders.collect())
    }

    async fn write_off(
        &self,
        series: SeriesName,
        epoch: u64,
        nodes: Vec<Uuid>,
        operation: Option<Operation>,
    ) -> Result<(), StoreError> {
        let mut data = self.data();
        data.append(operation);
        let held = data.scopes.iter().filter(|(scope_id, scope)| {
            let is_held =
                scope.leased.iter().any(|leased| nodes.contains(&leased.node) && leased.epoch < epoch);
            scope_id.series == series && is_held
        });
        let scope_ids: Vec<ScopeId> = held.map(|(scope_id, _)| scope_id.clone()).collect();
        for scope_id in scope_ids {
            data.decide_and_apply_for(self, &scope_id, &Request::WriteOff, &nodes, epoch).into_change()?;
        }
        Ok(())
    }
}
