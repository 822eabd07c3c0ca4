//! Which scopes there are, and what comes next in one, without touching it.

use super::{Entry, Machine, NextError, ScopeName};
use crate::error::IssueError;
use crate::name::SeriesName;
use crate::place::{Place, ScopeKey};
use crate::store::{Cursor, Store, StoreError};

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
        let (_, key) = entry.scope(ScopeName::default(), || self.clock.now())?;
        let level = self.dispenser.level(&entry.series, &key);
        if self.dispenser.direct(&entry.series).is_some() || level.is_some_and(|level| level.held > 0) {
            return Ok(true);
        }
        self.dispenser.warm(&entry.series, &key);
        Ok(self.peek(entry, ScopeName::default()).await?.next.is_none())
    }

    /// What is known of a scope without touching it. Never creates one.
    pub async fn peek(&self, entry: &Entry, name: ScopeName<'_>) -> Result<Peek, NextError> {
        let (_, key) = entry.scope(name, || self.clock.now())?;
        let found = self.dispenser.peek(&entry.series, &key).await;
        let found = found.map_err(|error| IssueError::Store {
            place: Place { series: entry.series.name().clone(), scope: key },
            error,
        })?;
        let (start, end) = (entry.series.start().value(), entry.series.end());
        let next = found.unwrap_or(start);
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
        self.dispenser.store().scopes(series, after, limit).await
    }
}
