//! A store in memory: the port's rules in their plainest form. A model for tests of the core, and proof that
//! the conformance suite asks for nothing that only a database can do. Must never ship.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bates_core::{
    Cursor, Definition, Grant, GrantError, Lease, Pinned, Place, Promise, Purpose, Recall, Record,
    Redescription, ScopeKey, SeriesName, Store, StoreError, Surrendered, Tail, Want, free_run, free_span,
};
use jiff::Timestamp;
use uuid::Uuid;

/// Cursors that last as long as the value does.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
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

    fn grant(&mut self, want: &Want) -> Result<Grant, GrantError> {
        self.known(&want.place.series)?;
        let found = self.cursors.get(&want.place).copied();
        let scopes = self.cursors.keys().filter(|place| place.series == want.place.series).count() as u64;
        if found.is_none() && scopes >= want.scopes_max {
            return Err(GrantError::TooManyScopes(want.scopes_max));
        }
        let Cursor { next, version } = found.unwrap_or(Cursor { next: want.start, version: 0 });
        let mut aside = self.aside.get(&want.place).into_iter().flatten().copied();
        let aside = || Ok::<_, Infallible>(aside.next());
        let Ok(found) = match want.purpose {
            Purpose::Lease => free_span(next, want.at_most(next), want.end, aside),
            _ => free_run(next, want.count, want.end, aside).map(|run| run.map(|run| (run, vec![]))),
        };
        let left = found.as_ref().map_or(0, |(lease, _)| lease.count());
        let fits = !want.purpose.is_all_or_none() || left >= want.count;
        let (lease, aside) =
            found.filter(|_| fits).ok_or(GrantError::Exhausted { left, elsewhere: false })?;
        self.cursors.insert(want.place.clone(), Cursor { next: lease.to(), version: version + 1 });
        if want.purpose == Purpose::Issue {
            self.ledger.entry(want.place.clone()).or_default().push(lease);
        }
        Ok(Grant { lease, version: version + 1, aside })
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
        let Some((pinned, key)) = state.series.get(&asked.series) else {
            state.series.insert(asked.series.clone(), (asked, fresh_key.clone()));
            return Ok(Pinned { permutation_key: fresh_key, is_new: true });
        };
        match StoreError::of_difference(pinned, &asked) {
            None => Ok(Pinned { permutation_key: key.clone(), is_new: false }),
            Some(refused) => Err(refused),
        }
    }

    async fn grant(&self, want: Want) -> Result<Grant, GrantError> {
        self.state().grant(&want)
    }

    async fn surrender(&self, tail: Tail) -> Result<Surrendered, StoreError> {
        let mut state = self.state();
        state.known(&tail.place.series)?;
        match state.cursors.get_mut(&tail.place) {
            Some(cursor) if cursor.next == tail.lease.to() && cursor.version == tail.version => {
                *cursor = Cursor { next: tail.lease.from(), version: cursor.version + 1 };
                Ok(Surrendered::Returned)
            }
            _ => Ok(Surrendered::Gap),
        }
    }

    async fn cursor(&self, place: Place) -> Result<Option<Cursor>, StoreError> {
        Ok(self.state().cursors.get(&place).copied())
    }

    async fn raise_floor(&self, place: Place, floor: u64) -> Result<Cursor, StoreError> {
        let mut state = self.state();
        state.known(&place.series)?;
        let cursor = state.cursors.entry(place).or_insert(Cursor { next: 0, version: 0 });
        if cursor.next < floor {
            *cursor = Cursor { next: floor, version: cursor.version + 1 };
        }
        Ok(*cursor)
    }

    async fn set_aside(&self, place: Place, positions: Vec<u64>) -> Result<u64, StoreError> {
        let mut state = self.state();
        state.known(&place.series)?;
        let start = state.series.get(&place.series).map_or(0, |(definition, _)| definition.start);
        let cursor = state.cursors.entry(place.clone()).or_insert(Cursor { next: start, version: 0 });
        cursor.version += 1;
        let passed = positions.iter().filter(|position| **position < cursor.next).count() as u64;
        state.aside.entry(place).or_default().extend(positions);
        Ok(passed)
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
