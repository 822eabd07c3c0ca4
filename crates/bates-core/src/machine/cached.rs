//! The hot path: numbers from memory, for callers that must not wait.

use std::sync::Arc;

use bates_pattern::{Position, Scope};
use jiff::Timestamp;

use super::Machine;
use crate::dispenser::{Popped, Rendering, TakeRequest};
use crate::range::{PositionRange, TakenPositions};
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

/// Numbers taken from memory.
#[derive(Debug)]
pub struct PoppedNumbers {
    taken: TakenPositions,
    rendering: Arc<Rendering>,
}

impl PoppedNumbers {
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        usize::try_from(self.taken.count()).unwrap_or(usize::MAX)
    }

    /// Appends the value of each, in order; before each, `begin` appends what stands before a value of that length, and after
    /// each comes `end`.
    pub fn append(&self, out: &mut Vec<u8>, begin: impl Fn(&mut Vec<u8>, usize), end: &[u8]) {
        for range in self.taken.ranges() {
            self.rendering.append(range, out, &begin, end);
        }
    }
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

    /// The next number of a scope, if held in memory. `scope` is its key.
    #[inline]
    pub fn try_pop(&self, entry: &SeriesEntry, scope: &str, mut answer: impl FnMut(&[u8])) -> Option<()> {
        if entry.bypasses_hot_path {
            return None;
        }
        loop {
            let open = || entry.rendering(scope);
            match self.dispenser.try_pop(&entry.series, scope, open, &mut answer)? {
                Popped::Answered(_) => break,
                // A rejected position is neither a number nor a gap.
                Popped::Position(position) if self.render_one(entry, scope, position, &mut answer)? => break,
                Popped::Position(_) => {}
            }
        }
        entry.counts.add_issued(1);
        Some(())
    }

    /// Returns whether the rules accept the position. `None`: the series was changed, and has no such scope any more.
    #[inline(never)]
    fn render_one(
        &self,
        entry: &SeriesEntry,
        scope: &str,
        position: u64,
        answer: &mut impl FnMut(&[u8]),
    ) -> Option<bool> {
        let range = PositionRange::new(position, position + 1)?;
        let Some(rendering) = entry.rendering(scope) else {
            self.dispenser.burn(&entry.series.scope_id(&ScopeKey::from_store(scope)), [range]);
            return None;
        };
        let mut text = Vec::with_capacity(64);
        Some(rendering.render_one(range, &mut text).map(answer).is_some())
    }

    /// The next `count` numbers of a scope, if held in memory. `None` also for rules that reject numbers: then it is not known
    /// how many positions they need.
    pub fn try_pop_many(&self, entry: &SeriesEntry, scope: &str, count: u64) -> Option<PoppedNumbers> {
        if entry.bypasses_hot_path || !entry.spec.reject.is_empty() {
            return None;
        }
        let (taken, rendering) =
            self.dispenser.try_take_to_render(&entry.series, scope, count, || entry.rendering(scope))?;
        let Some(rendering) = rendering.or_else(|| entry.rendering(scope).map(Arc::new)) else {
            self.dispenser.burn(&entry.series.scope_id(&ScopeKey::from_store(scope)), taken.ranges());
            return None;
        };
        entry.counts.add_issued(count);
        Some(PoppedNumbers { taken, rendering })
    }

    /// The scope of a Redis key, if the series has it.
    pub fn scope_of_key(&self, entry: &SeriesEntry, key: &str) -> Option<ScopeKey> {
        let parameters: Vec<(&str, &str)> = entry.key()?.read(key)?.collect();
        Some(self.open_scope(entry, (&*parameters).into()).ok()?.scope_id.scope)
    }

    /// Starts fetching the first numbers of these scopes, so that a caller with many of them waits once.
    pub fn prefetch_scopes(&self, scopes: &[(Arc<SeriesEntry>, ScopeKey)]) {
        self.dispenser.prefetch_all(scopes.iter().map(|(entry, scope)| (&entry.series, scope)));
    }
}
