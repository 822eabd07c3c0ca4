//! The hot path: numbers from memory, for callers that must not wait.

use bates_pattern::{Position, Scope};
use jiff::Timestamp;

use super::Machine;
use crate::dispenser::Wanted;
use crate::range::Taken;
use crate::scope::{ScopeKey, ScopeName, ScopeRefused};
use crate::series::{Entry, OpenScope};
use crate::store::Store;

/// A scope rendered and named once, for many calls.
#[derive(Clone, Debug)]
pub struct ReadyScope {
    scope: Scope,
    key: ScopeKey,
}

/// Why no number was in memory. None was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAtHand {
    /// Nothing of the scope is in memory; it is being fetched.
    #[error("no number of the scope is in memory just now: ask again, or wait for one")]
    Now,
    /// The series is gapless or audited, shows a date that must be computed, or is ordered and has documents.
    #[error("each number of this series has to be waited for")]
    Never,
    #[error(
        "the numbers are held by the process that this one was forked from: only that process hands them out"
    )]
    Forked,
    #[error("the numbering machine is closed")]
    Stopping,
    #[error(transparent)]
    Scope(#[from] ScopeRefused),
}

impl ReadyScope {
    pub fn into_scope(self) -> Scope {
        self.scope
    }
}

impl Entry {
    /// Where the series shows a date and `name` has none, the scope keeps the date of `moment` for good.
    pub fn ready(&self, name: ScopeName<'_>, moment: Timestamp) -> Result<ReadyScope, ScopeRefused> {
        let OpenScope { scope, place, .. } = self.scope(name, || moment)?;
        Ok(ReadyScope { scope, key: place.scope })
    }
}

impl<S: Store> Machine<S> {
    pub fn is_forked(&self) -> bool {
        self.dispenser.is_forked()
    }

    /// The next number of a scope, if it is held in memory. Otherwise starts fetching it.
    pub fn try_next(&self, entry: &Entry, ready: &ReadyScope) -> Result<(Position, String), NotAtHand> {
        // Invariant: what has to be recorded first, or written down, never leaves this way.
        if entry.spec.audit.is_on() || self.dispenser.direct(&entry.series).is_some() {
            return Err(NotAtHand::Never);
        }
        while let Some(taken) = self.dispenser.try_take(&entry.series, ready.key.as_str(), 1) {
            let Some(position) = Position::new(taken.first.from()) else { continue };
            // A rejected position is neither a number nor a gap.
            if let Ok(text) = ready.scope.number(position) {
                entry.counts.add_issued(1);
                return Ok((position, text));
            }
        }
        if self.dispenser.is_forked() {
            return Err(NotAtHand::Forked);
        }
        if self.dispenser.is_closing() {
            return Err(NotAtHand::Stopping);
        }
        self.dispenser.warm(&entry.series, &ready.key);
        Err(NotAtHand::Now)
    }

    /// The next `count` positions of the scope of `key`, in one run, if held in memory. `scope` is scratch space.
    pub fn try_next_by_key(&self, entry: &Entry, key: &str, count: u64, scope: &mut String) -> Option<Taken> {
        if entry.is_awaited {
            return None;
        }
        scope.clear();
        entry.key()?.write_scope(key, scope);
        let taken = self.dispenser.try_take_wanted(&entry.series, scope, Wanted::Run(count))?;
        entry.counts.add_issued(count);
        Some(taken)
    }

    /// Starts fetching the first numbers of the scope that `key` names, so that callers with many keys wait once.
    pub fn warm_by_key(&self, key: &str) {
        let Some(entry) = self.of_key(key) else { return };
        let Some(parameters) = entry.key().and_then(|template| template.read(key)) else { return };
        let parameters: Vec<(&str, &str)> = parameters.collect();
        if let Ok(open) = self.open_scope(&entry, (&*parameters).into()) {
            self.dispenser.warm(&entry.series, open.key());
        }
    }
}
