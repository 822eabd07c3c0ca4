//! Which scopes there are, and what comes next in one, without touching it.

use super::{Machine, NextError};
use crate::error::IssueError;
use crate::scope::{Place, ScopeKey, ScopeName};
use crate::series::{Entry, SeriesName};
use crate::store::{Cursor, Store, StoreError};

/// More than so many numbers of an earlier system in a row, at the very end, there hardly are.
const ASIDE_AT_THE_END_MAX: u64 = 1_000;

/// What is known of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The highest position handed out; after a crash, the highest granted.
    pub last: Option<u64>,
    /// The position that comes next, whether or not the rules accept it; `None` at the end of the space.
    pub next: Option<u64>,
    /// How many numbers are left: exact without rejection, else an estimate.
    pub left: u64,
    /// Whether the scope has a cursor.
    pub exists: bool,
}

impl<S: Store> Machine<S> {
    /// Whether a series without parameters can issue a number out of memory just now, or never again. What it lacks is
    /// fetched meanwhile.
    pub async fn is_ready(&self, entry: &Entry) -> Result<bool, NextError> {
        let (_, key) = entry.scope(ScopeName::default(), || self.runtime.now())?;
        let level = self.dispenser.level(&entry.series, &key);
        if self.dispenser.direct(&entry.series).is_some() || level.is_some_and(|level| level.held > 0) {
            return Ok(true);
        }
        self.dispenser.warm(&entry.series, &key);
        Ok(self.peek(entry, ScopeName::default()).await?.next.is_none())
    }

    /// The identity of a scope that a caller names.
    pub fn place(&self, entry: &Entry, name: ScopeName<'_>) -> Result<Place, NextError> {
        let (_, scope) = entry.scope(name, || self.runtime.now())?;
        Ok(Place { series: entry.series.name().clone(), scope })
    }

    /// What is known of a scope without touching it. Never creates one.
    pub async fn peek(&self, entry: &Entry, name: ScopeName<'_>) -> Result<Peek, NextError> {
        let (_, key) = entry.scope(name, || self.runtime.now())?;
        let found = self.dispenser.peek(&entry.series, &key).await;
        let place = || Place { series: entry.series.name().clone(), scope: key.clone() };
        let found = found.map_err(|error| IssueError::Store { place: place(), error })?;
        let (start, end) = (entry.series.start().value(), entry.series.end());
        let mut next = found.unwrap_or(start);
        if self.ends_aside(entry, &key, next).await? {
            next = end;
        }
        Ok(Peek {
            last: (next > start).then(|| next - 1),
            next: (next < end).then_some(next),
            left: entry.numbers_in(end.saturating_sub(next)),
            exists: found.is_some(),
        })
    }

    /// The scopes of a series in the order of their keys, after `after`, at most `limit`.
    pub async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Cursor)>, StoreError> {
        self.store().scopes(series, after, limit).await
    }

    /// Whether nothing but positions that were set aside is left of a shuffled scope: the cursor stays before them.
    async fn ends_aside(&self, entry: &Entry, key: &ScopeKey, next: u64) -> Result<bool, IssueError> {
        let left = entry.series.end().saturating_sub(next);
        if left == 0 || left > ASIDE_AT_THE_END_MAX || !entry.spec.shuffled {
            return Ok(false);
        }
        let place = Place { series: entry.series.name().clone(), scope: key.clone() };
        let limit = usize::try_from(left).unwrap_or(usize::MAX);
        let aside = self.store().aside(place.clone(), next, limit).await;
        let aside = aside.map_err(|error| IssueError::Store { place, error })?;
        Ok(aside.len() as u64 == left)
    }
}
