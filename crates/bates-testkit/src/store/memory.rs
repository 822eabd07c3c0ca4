//! A store in memory, on which the core is tested: it loads, lets the ledger decide, and applies, as every store does.
//! Must never ship.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bates_core::ledger::{
    AdoptedPositions, Decision, Keys, Outcome, Request, ScopeBefore, SeriesBefore, decide,
};
use bates_core::{
    Cursor, Definition, Grant, GrantError, Lease, Pinned, Place, Promise, Recall, Record, Redescription,
    ScopeKey, SeriesName, Store, StoreError, Surrendered, Tail, Want,
};
use jiff::Timestamp;
use uuid::Uuid;

/// Cursors that last as long as the value does. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    is_shared: bool,
}

#[derive(Default)]
pub(super) struct State {
    series: BTreeMap<SeriesName, (Definition, Option<Vec<u8>>)>,
    cursors: BTreeMap<Place, Cursor>,
    ledger: BTreeMap<Place, Vec<Lease>>,
    descriptions: BTreeMap<SeriesName, Box<str>>,
    described: u64,
    /// Epochs of series that were recalled, and whether the process that holds ranges has answered.
    epochs: BTreeMap<SeriesName, u64>,
    unanswered: BTreeMap<SeriesName, u64>,
    pub(super) given_up: Vec<(Place, Lease)>,
    burned: Vec<(Place, Lease)>,
    aside: BTreeMap<Place, BTreeSet<u64>>,
    pub(super) records: BTreeMap<(Timestamp, Uuid), Record>,
}

impl MemoryStore {
    /// One that several dispensers issue from, as nodes do.
    pub fn shared() -> Self {
        Self { is_shared: true, ..Self::default() }
    }

    /// Positions that reached no caller.
    pub fn burned(&self) -> Vec<(Place, Lease)> {
        self.state().burned.clone()
    }

    /// Ranges that were given up unused.
    pub fn given_up(&self) -> Vec<(Place, Lease)> {
        self.state().given_up.clone()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn known(&self, series: &SeriesName) -> Result<(), StoreError> {
        if self.series.contains_key(series) {
            Ok(())
        } else {
            Err(StoreError::UnknownSeries(series.as_str().into()))
        }
    }

    fn load(&self, place: &Place, request: &Request) -> ScopeBefore {
        let scopes = self.cursors.keys().filter(|other| other.series == place.series).count() as u64;
        let cursor = self.cursors.get(place).copied();
        let aside = self.aside.get(place);
        let adopted_to = aside.and_then(BTreeSet::last).map_or(0, |last| last + 1);
        let start = self.series.get(&place.series).map(|(definition, _)| definition.start);
        let next = cursor.unwrap_or(Cursor { next: 0, version: 0 });
        let mut adopted = AdoptedPositions::needed(next, adopted_to, [request]);
        while let Some(page) = adopted.missing_page() {
            let ahead = aside.into_iter().flat_map(|aside| aside.range(page.from..));
            adopted.add_page(ahead.take(page.limit).copied().collect());
        }
        let series = start.map(|start| SeriesBefore { scopes, start });
        ScopeBefore { cursor, series, adopted, ..ScopeBefore::default() }
    }

    fn ask(&mut self, place: &Place, request: &Request) -> Outcome {
        let before = self.load(place, request);
        let Decision { outcomes, change } = decide(&before, place, [request], &mut Keys::default());
        if let Some(cursor) = change.cursor {
            self.cursors.insert(place.clone(), cursor);
        }
        if !change.issued.is_empty() {
            self.ledger.entry(place.clone()).or_default().extend(change.issued);
        }
        if !change.adopted.is_empty() {
            self.aside.entry(place.clone()).or_default().extend(change.adopted);
        }
        outcomes.into_iter().next().expect("one request has one outcome")
    }
}

impl Store for MemoryStore {
    fn identity(&self) -> Uuid {
        Uuid::nil()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    async fn pin(&self, asked: Definition, fresh_key: Option<Vec<u8>>) -> Result<Pinned, StoreError> {
        let mut state = self.state();
        let Some((kept, key)) = state.series.get_mut(&asked.series) else {
            state.series.insert(asked.series.clone(), (asked, fresh_key.clone()));
            return Ok(Pinned { permutation_key: fresh_key, is_new: true, has_changed_rules: false });
        };
        if let Some(refused) = StoreError::of_difference(kept, &asked) {
            return Err(refused);
        }
        let pinned = Pinned::again(kept, &asked, key.clone());
        if let Some(rules) = kept.new_rules(&asked) {
            kept.rules = Some(rules.into());
        }
        Ok(pinned)
    }

    async fn grant(&self, want: Want) -> Result<Grant, GrantError> {
        let place = want.place.clone();
        self.state().ask(&place, &Request::Grant(want)).into_grant()
    }

    async fn surrender(&self, tail: Tail) -> Result<Surrendered, StoreError> {
        let place = tail.place.clone();
        self.state().ask(&place, &Request::Release(tail)).into_release()
    }

    async fn cursor(&self, place: Place) -> Result<Option<Cursor>, StoreError> {
        Ok(self.state().cursors.get(&place).copied())
    }

    async fn raise_floor(&self, place: Place, floor: u64) -> Result<Cursor, StoreError> {
        self.state().ask(&place, &Request::RaiseFloor(floor)).into_floor()
    }

    async fn set_aside(&self, place: Place, positions: Vec<u64>) -> Result<u64, StoreError> {
        self.state().ask(&place, &Request::Adopt(positions)).into_adopted()
    }

    async fn aside(&self, place: Place, from: u64, limit: usize) -> Result<Vec<u64>, StoreError> {
        let state = self.state();
        Ok(state
            .aside
            .get(&place)
            .into_iter()
            .flat_map(|aside| aside.range(from..))
            .take(limit)
            .copied()
            .collect())
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Cursor)>, StoreError> {
        let state = self.state();
        let of_series = state.cursors.iter().filter(|(place, _)| place.series == series);
        let behind = of_series.filter(|(place, _)| after.as_ref().is_none_or(|after| place.scope > *after));
        Ok(behind.take(limit).map(|(place, cursor)| (place.scope.clone(), *cursor)).collect())
    }

    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        state.known(&series)?;
        let found = state.descriptions.get(&series).cloned();
        if found != before && found != description {
            return Ok(false);
        }
        state.described += 1;
        match description {
            Some(description) => state.descriptions.insert(series, description),
            None => state.descriptions.remove(&series),
        };
        Ok(true)
    }

    async fn watch(&self) -> Result<u64, StoreError> {
        Ok(self.state().described)
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        from: Promise,
        to: Promise,
        described: Option<Redescription>,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        state.known(&series)?;
        if let Some(Redescription { before, after }) = described {
            if state.descriptions.get(&series) != Some(&before) {
                return Ok(false);
            }
            state.descriptions.insert(series.clone(), after);
        }
        state.described += 1;
        let pinned = state.series.get_mut(&series).map(|(definition, _)| &mut definition.promise);
        Ok(pinned.is_some_and(|pinned| {
            if *pinned == Some(from) || pinned.is_none() {
                *pinned = Some(to);
            }
            *pinned == Some(to)
        }))
    }

    async fn promises(&self) -> Result<Vec<(SeriesName, Promise)>, StoreError> {
        let state = self.state();
        let pinned = state.series.iter();
        Ok(pinned.filter_map(|(name, (definition, _))| Some((name.clone(), definition.promise?))).collect())
    }

    async fn recall(&self, series: SeriesName) -> Result<u64, StoreError> {
        let mut state = self.state();
        state.known(&series)?;
        let epoch = state.epochs.entry(series.clone()).or_default();
        *epoch += 1;
        let epoch = *epoch;
        state.unanswered.insert(series, epoch);
        Ok(epoch)
    }

    async fn recalls(&self) -> Result<Vec<Recall>, StoreError> {
        let state = self.state();
        let recalls =
            state.unanswered.iter().map(|(series, epoch)| Recall { series: series.clone(), epoch: *epoch });
        Ok(recalls.collect())
    }

    async fn give_up(
        &self,
        series: SeriesName,
        epoch: Option<u64>,
        unused: Vec<(ScopeKey, Lease)>,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        if epoch.is_some() && state.unanswered.get(&series).copied() == epoch {
            state.unanswered.remove(&series);
        }
        let place = |scope| Place { series: series.clone(), scope };
        state.given_up.extend(unused.into_iter().map(|(scope, range)| (place(scope), range)));
        Ok(())
    }

    async fn burn(&self, burned: Vec<(Place, Lease)>) -> Result<(), StoreError> {
        self.state().burned.extend(burned);
        Ok(())
    }

    async fn descriptions(&self) -> Result<Vec<(SeriesName, Box<str>)>, StoreError> {
        let state = self.state();
        Ok(state.descriptions.iter().map(|(series, text)| (series.clone(), text.clone())).collect())
    }

    async fn ledger(&self, place: Place) -> Result<Vec<Lease>, StoreError> {
        let mut joined: Vec<Lease> = Vec::new();
        for lease in self.state().ledger.get(&place).into_iter().flatten() {
            let from = match joined.last() {
                Some(last) if last.to() == lease.from() => joined.pop().map_or(lease.from(), Lease::from),
                _ => lease.from(),
            };
            joined.extend(Lease::new(from, lease.to()));
        }
        Ok(joined)
    }
}
