//! A series in a machine, and how its scopes are named.

use std::sync::Arc;

use bates_pattern::{Date, Scope};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::Notify;

use super::{Series, SeriesSpec};
use crate::counts::Counts;
use crate::document::{AssignError, Assignment};
use crate::ledger::GrantError;
use crate::scope::{KeyTemplate, ScopeError, ScopeId, ScopeKey, ScopeParams};

/// What a list of numbers holds: whole identifiers, or their sequence part for programs that add the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListValue {
    /// `PROJ-9012-1001`
    #[default]
    Id,
    /// `1001`
    Seq,
}

/// Who described a series, and so who may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesOrigin {
    /// The configuration, or the program itself.
    File,
    Api,
}

/// How many numbers the rules accept of all positions of a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceptedShare {
    pub(crate) numbers: u64,
    pub(crate) positions: u64,
}

#[derive(Debug)]
pub struct SeriesEntry {
    pub(crate) series: Series,
    pub(crate) spec: SeriesSpec,
    pub(crate) origin: SeriesOrigin,
    pub(crate) time_zone: TimeZone,
    pub(crate) parameters: Vec<String>,
    pub(crate) accepted: AcceptedShare,
    pub(crate) has_changed_rules: bool,
    pub(crate) counts: Arc<Counts>,
    /// Whether a number must be waited for: its date is computed, or it is recorded first.
    pub(crate) is_uncached: bool,
    /// Notified when there is something to deliver.
    pub(crate) document_notify: Arc<Notify>,
}

/// A scope rendered and named.
pub(crate) struct OpenScope<'e> {
    pub(crate) entry: &'e SeriesEntry,
    pub(crate) scope: Scope,
    pub(crate) scope_id: ScopeId,
}

impl OpenScope<'_> {
    pub(crate) fn key(&self) -> &ScopeKey {
        &self.scope_id.scope
    }
}

impl SeriesEntry {
    pub fn series(&self) -> &Series {
        &self.series
    }

    pub fn spec(&self) -> &SeriesSpec {
        &self.spec
    }

    pub fn origin(&self) -> SeriesOrigin {
        self.origin
    }

    pub fn key(&self) -> Option<&KeyTemplate> {
        self.spec.key.as_ref()
    }

    /// Sorted.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(String::as_str)
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Notified when this node has something to deliver.
    pub fn document_notify(&self) -> &Arc<Notify> {
        &self.document_notify
    }

    /// Whether its numbers are the positions themselves, so that they can be answered as integers.
    pub fn is_plain_count(&self) -> bool {
        self.series.pattern().is_plain_count()
    }

    /// The numbers among this many positions: exact without rejection, else an estimate.
    pub fn numbers_in(&self, positions: u64) -> u64 {
        let AcceptedShare { numbers, positions: of } = self.accepted;
        let share = u128::from(positions) * u128::from(numbers) / u128::from(of.max(1));
        u64::try_from(share).unwrap_or(positions)
    }

    /// Numbers in each of its scopes: exact without rejection, else an estimate.
    pub fn capacity(&self) -> u64 {
        self.numbers_in(self.series.end().saturating_sub(self.series.start().value()))
    }

    /// The fewest numbers left in any scope of the current period that this node was granted something in; numbers held
    /// in memory do not count as left.
    pub fn remaining(&self, moment: Timestamp) -> Option<u64> {
        let period = self.series.pattern().reset().period(self.date_at(moment));
        let next = self.counts.usage.next(period.map(|period| period.to_string()).as_deref())?;
        Some(self.numbers_in(self.series.end().saturating_sub(next)))
    }

    /// Remembers the cursor after a document, which is not granted as other numbers are.
    pub(crate) fn note_usage(&self, scope_id: &ScopeId, assignment: &Result<Assignment, AssignError>) {
        let next = match assignment {
            Ok(assignment) => assignment.position.value() + 1,
            Err(AssignError::Grant(GrantError::Exhausted { left, .. })) => {
                self.series.end().saturating_sub(*left)
            }
            Err(_) => return,
        };
        self.counts.usage.raise(scope_id.scope.parts().1, next);
    }

    /// The business date, in the time zone of the series.
    pub fn date_at(&self, moment: Timestamp) -> Date {
        moment.to_zoned(self.time_zone.clone()).date()
    }

    /// Parameters that the pattern does not show go into the key only.
    pub(crate) fn open_scope(
        &self,
        name: ScopeParams<'_>,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<OpenScope<'_>, ScopeError> {
        let mut given: Vec<&str> = name.parameters.iter().map(|(name, _)| *name).collect();
        given.sort_unstable();
        // Invariant: a scope has these parameters and no others, or one text could come from two scopes.
        if !given.iter().eq(&self.parameters) {
            let cut = |text: &str| text.chars().take(64).collect::<String>();
            let given = given.iter().take(20).map(|name| cut(name)).collect::<Vec<_>>().join(", ").into();
            return Err(ScopeError::Parameters { given, expected: self.parameters.join(", ").into() });
        }
        let pattern = self.series.pattern();
        let date = match name.date {
            None if pattern.needs_date() => Some(self.date_at(now())),
            date => date,
        };
        let shown =
            name.parameters.iter().filter(|(name, _)| pattern.parameters().any(|known| known == *name));
        let scope = pattern.scope(shown.copied(), date)?;
        let key = ScopeKey::new(name.parameters.iter().copied(), scope.period())?;
        Ok(OpenScope { entry: self, scope, scope_id: self.series.scope_id(&key) })
    }
}
