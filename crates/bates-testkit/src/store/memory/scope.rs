//! One scope: loads it, lets the ledger decide, and applies the change.

use std::collections::BTreeSet;

use bates_core::ledger::{
    AdoptedPositions, BatchState, Decision, IdempotencyKey, KeyState, Outcome, PooledRange, PooledState,
    Request, ScopeBefore, ScopeChange, SeriesBefore, decide,
};
use bates_core::{Cursor, MissingRange, Position, PositionRange, RangeSet, ScopeId};
use uuid::Uuid;

use super::{Data, MemoryStore, SeriesRow};

/// A stored scope.
#[derive(Default)]
pub(super) struct ScopeRow {
    pub(super) cursor: Option<Cursor>,
    pub(super) gapless_from: u64,
    /// The ledger.
    pub(super) issued: RangeSet,
    pub(super) leased: Vec<LeasedRange>,
    pub(super) pooled: Vec<PooledRange<Uuid>>,
    pub(super) lost: Vec<MissingRange>,
    pub(super) adopted: BTreeSet<Position>,
}

/// A range that a process holds.
#[derive(Clone)]
pub(super) struct LeasedRange {
    pub(super) node: Uuid,
    /// The epoch of the series at the time of the grant.
    pub(super) epoch: u64,
    pub(super) range: PositionRange,
}

impl ScopeRow {
    pub(super) fn adopted_from(&self, from: u64) -> impl Iterator<Item = &Position> {
        let range = self.adopted.range(Position::new(from).unwrap_or(Position::MAX)..);
        range.filter(move |position| position.value() >= from)
    }

    /// The positions that these processes were granted before an epoch, without those recorded as lost.
    pub(super) fn held_by(&self, nodes: &[Uuid], epoch: u64) -> RangeSet {
        let leased = self.leased.iter().filter(|leased| nodes.contains(&leased.node) && leased.epoch < epoch);
        RangeSet::of(leased.map(|leased| leased.range))
            .difference(&RangeSet::of(self.lost.iter().map(|lost| lost.range)))
    }

    /// Removes positions from the ranges that these processes hold.
    fn remove_held(&mut self, nodes: impl Fn(Uuid) -> bool, gone: &RangeSet) {
        let leased = std::mem::take(&mut self.leased);
        for LeasedRange { node, epoch, range } in leased {
            let remaining =
                if nodes(node) { RangeSet::of([range]).difference(gone) } else { RangeSet::of([range]) };
            self.leased.extend(remaining.iter().map(|range| LeasedRange { node, epoch, range }));
        }
    }

    pub(super) fn lose(&mut self, missing: impl IntoIterator<Item = MissingRange>) {
        for missing in missing {
            if !self.lost.contains(&missing) {
                self.lost.push(missing);
            }
        }
    }
}

impl Data {
    /// Loads a scope, lets the ledger decide, and applies the change.
    pub(super) fn decide_and_apply(
        &mut self,
        process: &MemoryStore,
        scope_id: &ScopeId,
        request: &Request,
    ) -> Outcome {
        self.decide_and_apply_for(process, scope_id, request, &[process.node.id], u64::MAX)
    }

    /// The same for the ranges that these processes were granted before an epoch.
    pub(super) fn decide_and_apply_for(
        &mut self,
        process: &MemoryStore,
        scope_id: &ScopeId,
        request: &Request,
        holders: &[Uuid],
        epoch: u64,
    ) -> Outcome {
        let before = self.load(process, scope_id, request, holders, epoch);
        let batch = BatchState::of([request]);
        let states = batch.first_uses().into_iter().map(|(key, _)| self.key_state(key)).collect();
        let mut batch = batch.with_states(states).expect("each key has a state");
        let mut decision = decide(&before, scope_id, [request], &mut batch);
        if decision.is_exhausted() {
            let leased = self.scopes.get(scope_id).map(|scope| &*scope.leased).unwrap_or_default();
            let spent_to = decision.change.used_to_if_exhausted.unwrap_or(0);
            let is_spent =
                |leased: &LeasedRange| leased.node == process.node.id && leased.range.from() < spent_to;
            let is_elsewhere =
                |leased: &LeasedRange| leased.node != process.node.id && self.is_alive(leased.node, process);
            decision.set_holders(leased.iter().any(is_spent), leased.iter().any(is_elsewhere));
        }
        let Decision { outcomes, change } = decision;
        let outcome = outcomes.into_iter().next().expect("one request has one outcome");
        if !change.is_empty() || !change.given_up.is_empty() || !change.adopted.is_empty() {
            self.apply(process, scope_id, &change, holders);
        }
        if let Some(new) = request.new_document(&outcome) {
            self.put_document(new, process.runtime.now());
        }
        outcome
    }

    fn key_state(&self, key: &IdempotencyKey) -> KeyState {
        let Some(row) = self.keys.get(key) else { return KeyState::New };
        let document = self.documents.get(&row.assignment.document_id);
        let state = document.map_or(row.pruned_as, |row| row.document.state);
        KeyState::Used(row.digest, bates_core::Assignment { state, ..row.assignment.clone() })
    }

    fn load(
        &self,
        process: &MemoryStore,
        scope_id: &ScopeId,
        request: &Request,
        holders: &[Uuid],
        epoch: u64,
    ) -> ScopeBefore {
        let new = ScopeRow::default();
        let scope = self.scopes.get(scope_id).unwrap_or(&new);
        let series = self.series.get(&scope_id.series);
        let adopted_to = scope.adopted.last().map_or(0, |last| last.value() + 1);
        let cursor = scope.cursor.unwrap_or(Cursor { next: 0, version: 0 });
        let mut adopted = AdoptedPositions::for_requests(cursor, adopted_to, [request]);
        while let Some(page) = adopted.missing_page() {
            adopted.add_page(scope.adopted_from(page.from).take(page.limit).copied().collect());
        }
        ScopeBefore {
            cursor: scope.cursor,
            series: series.filter(|_| scope.cursor.is_none()).map(|row| self.series_before(row)),
            promise: series.and_then(|row| row.definition.promise).filter(|_| process.is_shared),
            adopted,
            held: scope.held_by(holders, epoch),
            ..ScopeBefore::default()
        }
    }

    /// Only a new scope needs it.
    fn series_before(&self, row: &SeriesRow) -> SeriesBefore {
        let is_of = |scope_id: &ScopeId| scope_id.series == row.definition.series;
        let scopes = self.scopes.iter().filter(|(scope_id, scope)| is_of(scope_id) && scope.cursor.is_some());
        SeriesBefore { scopes: scopes.count() as u64, start: row.definition.start, floor: row.floor }
    }

    fn apply(&mut self, process: &MemoryStore, scope_id: &ScopeId, change: &ScopeChange, holders: &[Uuid]) {
        let epoch = self.series.get(&scope_id.series).map_or(0, |row| row.epoch);
        if change.resets_pool_server
            && let Some(pool) = self.pools.get_mut(scope_id)
        {
            pool.server = None;
        }
        let (node, scope) = (process.node.id, self.scopes.entry(scope_id.clone()).or_default());
        if let Some(to) = change.released_to {
            scope.leased.retain(|leased| leased.node != node || leased.range.from() >= to);
        }
        if let Some(used) = change.used_to.and_then(|to| PositionRange::new(0, to)) {
            scope.remove_held(|holder| holder == node, &RangeSet::of([used]));
        }
        scope.remove_held(|holder| holders.contains(&holder), &change.given_up);
        scope.lose(change.lost.iter().copied());
        if let Some(cursor) = change.cursor {
            scope.gapless_from = scope.gapless_from.min(cursor.next);
            scope.cursor = Some(cursor);
        }
        scope.issued = scope.issued.union(&RangeSet::of(change.issued.iter().copied()));
        scope.leased.extend(change.held.iter().map(|range| LeasedRange { node, epoch, range: *range }));
        let pooled =
            |range: &PositionRange| PooledRange { range: *range, state: PooledState::Granted, holder: node };
        scope.pooled.extend(change.pooled.iter().map(pooled));
        scope.adopted.extend(&change.adopted);
        change.operations.iter().for_each(|operation| self.append(Some(operation.clone())));
    }
}
