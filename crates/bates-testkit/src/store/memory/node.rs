//! The processes of a store in memory, and what each holds.

use std::time::Duration;

use bates_core::ledger::Request;
use bates_core::{Holder, Lease, NodeStore, Place, Recall, ScopeKey, SeriesName, StoreError};
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
        let answered = |series| node.answered.get(series).copied().unwrap_or(0).max(node.begun_at);
        let unanswered = data.series.iter().filter(|(series, row)| row.epoch > answered(series));
        Ok(unanswered.map(|(series, row)| Recall { series: series.clone(), epoch: row.epoch }).collect())
    }

    async fn give_up(
        &self,
        series: SeriesName,
        epoch: Option<u64>,
        unused: Vec<(ScopeKey, Lease)>,
    ) -> Result<(), StoreError> {
        let mut data = self.data();
        for (scope, range) in unused {
            let place = Place { series: series.clone(), scope };
            data.ask(self, &place, &Request::GiveUp(vec![range])).into_change()?;
        }
        let Some(epoch) = epoch else { return Ok(()) };
        for (_, scope) in data.scopes.iter_mut().filter(|(place, _)| place.series == series) {
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
            let held = data.scopes.iter().filter(|(place, _)| place.series == series);
            let held = held.flat_map(|(place, scope)| {
                let of_node =
                    scope.leased.iter().filter(|leased| leased.node == *node && leased.epoch < epoch);
                of_node.map(|leased| (place.scope.clone(), leased.range))
            });
            let ranges: Vec<(ScopeKey, Lease)> = held.collect();
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

    async fn write_off(&self, series: SeriesName, epoch: u64, nodes: Vec<Uuid>) -> Result<(), StoreError> {
        let mut data = self.data();
        let held = data.scopes.iter().filter(|(place, scope)| {
            let is_held =
                scope.leased.iter().any(|leased| nodes.contains(&leased.node) && leased.epoch < epoch);
            place.series == series && is_held
        });
        let places: Vec<Place> = held.map(|(place, _)| place.clone()).collect();
        for place in places {
            data.ask_about(self, &place, &Request::WriteOff, &nodes, epoch).into_change()?;
        }
        Ok(())
    }
}
