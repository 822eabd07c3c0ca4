//! Reads scopes and their next positions, and finds the series of an identifier. Never creates or changes a scope.

use std::sync::Arc;

use bates_pattern::{ParsedIdentifier, Position};

use super::{Machine, NextError};
use crate::error::IssueError;
use crate::scope::{ScopeId, ScopeKey, ScopeParams};
use crate::series::{SeriesEntry, SeriesName, floor_of};
use crate::store::{Cursor, Store, StoreResult};

/// Max adopted positions scanned at the end of a scope.
const ADOPTED_AT_END_MAX: u64 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The highest position handed out; after a crash, the highest granted.
    pub last: Option<Position>,
    /// `None` at the end of the space. The rules may reject it.
    pub next: Option<Position>,
    /// Numbers left: exact without rejection, else an estimate.
    pub left: u64,
    pub exists: bool,
}

/// A series that an identifier could belong to.
#[derive(Clone, Debug)]
pub struct IdentifierMatch {
    pub entry: Arc<SeriesEntry>,
    pub parameters: Vec<(String, String)>,
    pub period: Option<String>,
    /// `None` if it is hidden: see [`Machine::find`].
    pub position: Option<Position>,
    /// `None` if the identifier does not show its whole scope.
    pub granted: Option<bool>,
}

impl<S: Store> Machine<S> {
    /// Whether a series without parameters can issue from memory now, or never again. Otherwise starts fetching.
    pub async fn is_ready(&self, entry: &SeriesEntry) -> Result<bool, NextError> {
        let open = self.open_scope(entry, ScopeParams::default())?;
        let is_held = self.dispenser.level(&entry.series, open.key()).is_some_and(|level| level.held > 0);
        if is_held || self.dispenser.direct_purpose(&entry.series).is_some() {
            return Ok(true);
        }
        self.dispenser.prefetch(&entry.series, open.key());
        Ok(self.peek(entry, ScopeParams::default()).await?.next.is_none())
    }

    /// No number of the scope is longer.
    pub fn number_bytes_max(&self, entry: &SeriesEntry, params: ScopeParams<'_>) -> Result<usize, NextError> {
        Ok(self.open_scope(entry, params)?.scope.number_bytes_max())
    }

    pub fn scope_id(&self, entry: &SeriesEntry, params: ScopeParams<'_>) -> Result<ScopeId, NextError> {
        Ok(self.open_scope(entry, params)?.scope_id)
    }

    pub async fn peek(&self, entry: &SeriesEntry, params: ScopeParams<'_>) -> Result<Peek, NextError> {
        let scope_id = self.scope_id(entry, params)?;
        let found = self.dispenser.peek(&entry.series, &scope_id.scope).await;
        let found = found.map_err(IssueError::from_store(&scope_id))?;
        let (start, end) = (entry.series.start().value(), entry.series.end());
        let mut next = match found {
            Some(next) => next,
            None => self.first_of_new_scope(entry).await.map_err(IssueError::from_store(&scope_id))?,
        };
        let adopted_left = self.has_only_adopted_left(entry, &scope_id, next).await;
        if adopted_left.map_err(IssueError::from_store(&scope_id))? {
            next = end;
        }
        Ok(Peek {
            last: found.and_then(|next| last_before(next, start)),
            next: Position::new(next).filter(|_| next < end),
            left: entry.numbers_in(end.saturating_sub(next)),
            exists: found.is_some(),
        })
    }

    async fn first_of_new_scope(&self, entry: &SeriesEntry) -> StoreResult<u64> {
        let floors = self.store().series_floors().await?;
        let floor = floor_of(&floors, entry.series().name());
        Ok(entry.series.start().value().max(floor))
    }

    /// The `last` of [`Self::peek`] for many scopes of a series, in their order, with at most one look into the store.
    pub async fn last_positions(
        &self,
        entry: &SeriesEntry,
        scopes: &[ScopeKey],
    ) -> StoreResult<Vec<Option<Position>>> {
        let start = entry.series.start().value();
        let next = self.dispenser.peek_all(&entry.series, scopes).await?;
        Ok(next.into_iter().map(|next| last_before(next?, start)).collect())
    }

    /// In the order of their keys, after `after`, at most `limit`.
    pub async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Cursor)>> {
        self.store().scopes(series, after, limit).await
    }

    /// Whether only adopted positions are left of a shuffled scope: its cursor stays before them.
    async fn has_only_adopted_left(&self, entry: &SeriesEntry, of: &ScopeId, next: u64) -> StoreResult<bool> {
        let left = entry.series.end().saturating_sub(next);
        if left == 0 || left > ADOPTED_AT_END_MAX || !entry.spec.shuffled {
            return Ok(false);
        }
        let limit = usize::try_from(left).unwrap_or(usize::MAX);
        Ok(self.store().adopted_positions(of.clone(), next, limit).await?.len() as u64 == left)
    }

    /// Every series that an identifier could belong to, by name.
    ///
    /// Unless `shows_shuffled`, positions of shuffled series are hidden: look-ups of all possible identifiers would
    /// otherwise reveal the numbers to come, in their order.
    pub async fn find(&self, id: &str, shows_shuffled: bool) -> StoreResult<Vec<IdentifierMatch>> {
        let mut found = Vec::new();
        for entry in self.registry().entries() {
            found.extend(self.find_in(entry, id, shows_shuffled).await?);
        }
        Ok(found)
    }

    /// As [`find`](Self::find), in one series.
    pub async fn find_in(
        &self,
        entry: &Arc<SeriesEntry>,
        id: &str,
        shows_shuffled: bool,
    ) -> StoreResult<Option<IdentifierMatch>> {
        let Ok(parsed) = entry.series.pattern().parse(id) else { return Ok(None) };
        let position = parsed.position();
        let mut granted = None;
        if let Some(scope) = entry.scope_of(&parsed) {
            let from_start = entry.series.start().value()..;
            let is_below = |next: u64| from_start.contains(&position.value()) && position.value() < next;
            let cursor = self.store().cursor(entry.series.scope_id(&scope)).await?;
            granted = Some(cursor.is_some_and(|cursor| is_below(cursor.next)));
        }
        let is_shown = shows_shuffled || !entry.spec.shuffled;
        Ok(Some(IdentifierMatch {
            entry: entry.clone(),
            parameters: parsed.parameters().map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
            period: parsed.period().map(|period| period.to_string()),
            position: is_shown.then_some(position),
            granted,
        }))
    }
}

/// `None` if the scope has handed out nothing.
fn last_before(next: u64, start: u64) -> Option<Position> {
    next.checked_sub(1).filter(|last| *last >= start).and_then(Position::new)
}

impl SeriesEntry {
    /// The position of an identifier, and its scope if the identifier shows all of it.
    pub fn locate(&self, id: &str) -> Option<(Option<ScopeKey>, Position)> {
        let parsed = self.series.pattern().parse(id).ok()?;
        Some((self.scope_of(&parsed), parsed.position()))
    }

    fn scope_of(&self, parsed: &ParsedIdentifier) -> Option<ScopeKey> {
        let is_whole = parsed.parameters().count() == self.parameters.len();
        ScopeKey::new(parsed.parameters(), parsed.period()).ok().filter(|_| is_whole)
    }
}
