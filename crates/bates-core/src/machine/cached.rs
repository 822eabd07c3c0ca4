//! The hot path: numbers from memory, for callers that must not wait.

use bates_pattern::{Position, Scope};
use jiff::Timestamp;

use super::Machine;
use crate::dispenser::TakeRequest;
use crate::range::TakenPositions;
use crate::scope::{ScopeError, ScopeKey, ScopeParams};
use crate::series::{OpenScope, SeriesEntry};
use crate::store::Store;

/// A scope opened once for many calls.
#[derive(Clone, Debug)]
pub struct PreparedScope {
    scope: Scope,
    key: ScopeKey,
}

/// Why no number was in memory. None was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCached {
    #[error("no number of the scope is in memory yet; it is being fetched: ask again, or wait for it")]
    Fetching,
    /// The series is gapless or audited, shows a date that must be computed, or is ordered and either on a
    /// shared store or numbering documents.
    #[error("this series issues no number from memory: wait for each one")]
    Uncacheable,
    #[error("this process was forked from the one that holds the numbers: only that one hands them out")]
    Forked,
    #[error("the numbering machine is closed")]
    Stopping,
    #[error(transparent)]
    Scope(#[from] ScopeError),
}

impl PreparedScope {
    pub fn into_scope(self) -> Scope {
        self.scope
    }
}

impl SeriesEntry {
    /// If the series shows a date and `params` has none, the scope always shows the date of `moment`.
    pub fn prepare(&self, params: ScopeParams<'_>, moment: Timestamp) -> Result<PreparedScope, ScopeError> {
        let OpenScope { scope, scope_id, .. } = self.open_scope(params, || moment)?;
        Ok(PreparedScope { scope, key: scope_id.scope })
    }
}

impl<S: Store> Machine<S> {
    pub fn is_forked(&self) -> bool {
        self.dispenser.is_forked()
    }

    /// The next number of a scope, if it is held in memory. Otherwise starts fetching it.
    pub fn try_next(&self, entry: &SeriesEntry, of: &PreparedScope) -> Result<(Position, String), NotCached> {
        // Invariant: a number that must be recorded or written to the store first never leaves this way.
        if entry.spec.audit.is_on() || self.dispenser.direct_purpose(&entry.series).is_some() {
            return Err(NotCached::Uncacheable);
        }
        while let Some(taken) = self.dispenser.try_take(&entry.series, of.key.as_str(), 1) {
            let Some(position) = Position::new(taken.first.from()) else { continue };
            // A rejected position is neither a number nor a gap.
            if let Ok(text) = of.scope.number(position) {
                entry.counts.add_issued(1);
                return Ok((position, text));
            }
        }
        if self.dispenser.is_forked() {
            return Err(NotCached::Forked);
        }
        if self.dispenser.is_closing() {
            return Err(NotCached::Stopping);
        }
        self.dispenser.prefetch(&entry.series, &of.key);
        Err(NotCached::Fetching)
    }

    /// The next `count` positions of the scope of `key`, in one range, if held in memory. `scope` is scratch space.
    pub fn try_next_by_key(
        &self,
        entry: &SeriesEntry,
        key: &str,
        count: u64,
        scope: &mut String,
    ) -> Option<TakenPositions> {
        if entry.bypasses_hot_path {
            return None;
        }
        scope.clear();
        entry.key()?.write_scope(key, scope);
        let taken = self.dispenser.try_take_request(&entry.series, scope, TakeRequest::Run(count))?;
        entry.counts.add_issued(count);
        Some(taken)
    }

    /// Starts fetching the first numbers of the scope of `key`, so that callers with many keys wait once.
    pub fn prefetch_by_key(&self, key: &str) {
        let Some(entry) = self.series_by_key(key) else { return };
        let Some(parameters) = entry.key().and_then(|template| template.read(key)) else { return };
        let parameters: Vec<(&str, &str)> = parameters.collect();
        if let Ok(open) = self.open_scope(&entry, (&*parameters).into()) {
            self.dispenser.prefetch(&entry.series, open.key());
        }
    }
}
