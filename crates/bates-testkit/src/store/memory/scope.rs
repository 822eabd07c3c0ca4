//! A scope: loaded, decided by the ledger, and applied.

use std::collections::BTreeSet;

use bates_core::ledger::{
    AdoptedPositions, Decision, Key, KeyState, Keys, Outcome, PoolState, PooledRange, Request, ScopeBefore,
    ScopeChange, SeriesBefore, decide,
};
use bates_core::{Cursor, Lease, Missing, Place, Position, Ranges};
use uuid::Uuid;

use super::{Data, MemoryStore, SeriesRow};

/// A scope as it is kept.
#[derive(Default)]
pub(super) struct ScopeRow {
    pub(super) cursor: Option<Cursor>,
    pub(super) gapless_from: u64,
    /// The ledger.
    pub(super) issued: Ranges,
    pub(super) leased: Vec<LeasedRange>,
    pub(super) pooled: Vec<PooledRange<Uuid>>,
    pub(super) lost: Vec<Missing>,
    pub(super) adopted: BTreeSet<Position>,
}

/// What a process holds.
#[derive(Clone)]
pub(super) struct LeasedRange {
    pub(super) node: Uuid,
    /// The epoch of the series when it was granted.
    pub(super) epoch: u64,
    pub(super) range: Lease,
}

impl ScopeRow {
    pub(super) fn adopted_from(&self, from: u64) -> impl Iterator<Item = &Position> {
        let range = self.adopted.range(Position::new(from).unwrap_or(Position::MAX)..);
        range.filter(move |position| position.value() >= from)
    }

    /// What these processes hold of it, granted before an epoch; what became of the rest is known.
    pub(super) fn held_by(&self, nodes: &[Uuid], epoch: u64) -> Ranges {
        let leased = self.leased.iter().filter(|leased| nodes.contains(&leased.node) && leased.epoch < epoch);
        Ranges::of(leased.map(|leased| leased.range))
            .without(&Ranges::of(self.lost.iter().map(|lost| lost.range)))
    }

    /// Takes positions out of what processes hold.
    fn keep(&mut self, nodes: impl Fn(Uuid) -> bool, gone: &Ranges) {
        let leased = std::mem::take(&mut self.leased);
        for LeasedRange { node, epoch, range } in leased {
            let kept = if nodes(node) { Ranges::of([range]).without(gone) } else { Ranges::of([range]) };
            self.leased.extend(kept.iter().map(|range| LeasedRange { node, epoch, range }));
        }
    }

    pub(super) fn lose(&mut self, missing: impl IntoIterator<Item = Missing>) {
        for missing in missing {
            if !self.lost.contains(&missing) {
                self.lost.push(missing);
            }
        }
    }
}

impl Data {
    /// Loads a scope, lets the ledger decide, and applies the change.
    pub(super) fn ask(&mut self, asker: &MemoryStore, place: &Place, request: &Request) -> Outcome {
        self.ask_about(asker, place, request, &[asker.node.id], u64::MAX)
    }

    /// The same, about what these processes were granted before an epoch.
    pub(super) fn ask_about(
        &mut self,
        asker: &MemoryStore,
        place: &Place,
        request: &Request,
        holders: &[Uuid],
        epoch: u64,
    ) -> Outcome {
        let before = self.load(asker, place, request, holders, epoch);
        let keys = Keys::of([request]);
        let states = keys.first_uses().into_iter().map(|(key, _)| self.key_state(key)).collect();
        let mut keys = keys.learn(states).expect("each key has a state");
        let mut decision = decide(&before, place, [request], &mut keys);
        if decision.is_exhausted() {
            let leased = self.scopes.get(place).map(|scope| &*scope.leased).unwrap_or_default();
            let spent_to = decision.change.spent_to.unwrap_or(0);
            let is_spent =
                |leased: &LeasedRange| leased.node == asker.node.id && leased.range.from() < spent_to;
            let is_elsewhere =
                |leased: &LeasedRange| leased.node != asker.node.id && self.is_alive(leased.node, asker);
            decision.know_holders(leased.iter().any(is_spent), leased.iter().any(is_elsewhere));
        }
        let Decision { outcomes, change } = decision;
        let outcome = outcomes.into_iter().next().expect("one request has one outcome");
        if !change.is_empty() || !change.given_up.is_empty() || !change.adopted.is_empty() {
            self.apply(asker, place, &change, holders);
        }
        if let Some(numbered) = request.new_document(&outcome) {
            self.put_document(numbered, asker.runtime.now());
        }
        outcome
    }

    fn key_state(&self, key: &Key) -> KeyState {
        let Some(row) = self.keys.get(key) else { return KeyState::New };
        let document = self.documents.get(&row.assigned.event);
        let state = document.map_or(row.pruned_as, |row| row.document.state);
        KeyState::Used(row.digest, bates_core::Assigned { state, ..row.assigned.clone() })
    }

    fn load(
        &self,
        asker: &MemoryStore,
        place: &Place,
        request: &Request,
        holders: &[Uuid],
        epoch: u64,
    ) -> ScopeBefore {
        let none = ScopeRow::default();
        let scope = self.scopes.get(place).unwrap_or(&none);
        let series = self.series.get(&place.series);
        let adopted_to = scope.adopted.last().map_or(0, |last| last.value() + 1);
        let cursor = scope.cursor.unwrap_or(Cursor { next: 0, version: 0 });
        let mut adopted = AdoptedPositions::needed(cursor, adopted_to, [request]);
        while let Some(page) = adopted.missing_page() {
            adopted.add_page(scope.adopted_from(page.from).take(page.limit).copied().collect());
        }
        ScopeBefore {
            cursor: scope.cursor,
            series: series.filter(|_| scope.cursor.is_none()).map(|row| self.series_before(row)),
            promise: series.and_then(|row| row.definition.promise).filter(|_| asker.is_shared),
            adopted,
            held: scope.held_by(holders, epoch),
            ..ScopeBefore::default()
        }
    }

    /// Only a new scope needs it.
    fn series_before(&self, row: &SeriesRow) -> SeriesBefore {
        let is_of = |place: &Place| place.series == row.definition.series;
        let scopes = self.scopes.iter().filter(|(place, scope)| is_of(place) && scope.cursor.is_some());
        SeriesBefore { scopes: scopes.count() as u64, start: row.definition.start }
    }

    fn apply(&mut self, asker: &MemoryStore, place: &Place, change: &ScopeChange, holders: &[Uuid]) {
        let epoch = self.series.get(&place.series).map_or(0, |row| row.epoch);
        if change.forgets_pool_server
            && let Some(pool) = self.pools.get_mut(place)
        {
            pool.server = None;
        }
        let (node, scope) = (asker.node.id, self.scopes.entry(place.clone()).or_default());
        if let Some(to) = change.released_to {
            scope.leased.retain(|leased| leased.node != node || leased.range.from() >= to);
        }
        if let Some(used) = change.used_to.and_then(|to| Lease::new(0, to)) {
            scope.keep(|holder| holder == node, &Ranges::of([used]));
        }
        scope.keep(|holder| holders.contains(&holder), &change.given_up);
        scope.lose(change.lost.iter().copied());
        if let Some(cursor) = change.cursor {
            scope.gapless_from = scope.gapless_from.min(cursor.next);
            scope.cursor = Some(cursor);
        }
        scope.issued = scope.issued.and(&Ranges::of(change.issued.iter().copied()));
        scope.leased.extend(change.leased.iter().map(|range| LeasedRange { node, epoch, range: *range }));
        let pooled = |range: &Lease| PooledRange { range: *range, state: PoolState::Granted, holder: node };
        scope.pooled.extend(change.pooled.iter().map(pooled));
        scope.adopted.extend(&change.adopted);
    }
}
