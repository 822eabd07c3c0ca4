//! A series in a machine, and how its scopes are opened.

use std::sync::Arc;

use bates_pattern::{Date, Scope};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::Notify;

use super::{Series, SeriesSpec};
use crate::counts::Counts;
use crate::dispenser::Rendering;
use crate::document::{AssignError, Assignment};
use crate::ledger::GrantError;
use crate::scope::{KeyTemplate, ScopeError, ScopeId, ScopeKey, ScopeParams, is_value};

/// The elements of a list of numbers: whole identifiers, or their sequence part for programs that add the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListValue {
    /// `PROJ-9012-1001`
    #[default]
    Id,
    /// `1001`
    Seq,
}

/// Where a series is described, and so where it can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesOrigin {
    /// The configuration, or the program itself.
    File,
    Api,
}

/// How many of a pattern's positions the rules accept.
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
    /// Whether `try_next_by_key` must refuse it: a number needs today's date, or is recorded first.
    pub(crate) bypasses_hot_path: bool,
    /// Notified when this node has written a document, or an operator has requested a retry here.
    pub(crate) document_notify: Arc<Notify>,
}

/// A scope ready to render, and its id.
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

    /// Whether its numbers are the positions themselves, so that they can be answered as integers.
    pub fn numbers_are_positions(&self) -> bool {
        self.series.pattern().numbers_are_positions()
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

    /// Notes the cursor after a document: it was not moved by a grant.
    pub(crate) fn note_usage(&self, scope_id: &ScopeId, assignment: &Result<Assignment, AssignError>) {
        let end = self.series.end();
        let next = match assignment {
            Ok(assignment) => assignment.position.value() + 1,
            Err(AssignError::Grant(GrantError::Exhausted { left, .. })) => end.saturating_sub(*left),
            Err(_) => return,
        };
        self.counts.usage.raise(scope_id.scope.parts().1, next);
    }

    /// The business date, in the time zone of the series.
    pub fn date_at(&self, moment: Timestamp) -> Date {
        moment.to_zoned(self.time_zone.clone()).date()
    }

    /// How the scope with this key is rendered; `None` if the series shows dates or refuses the parameters.
    pub(crate) fn rendering(&self, scope: &str) -> Option<Rendering> {
        let pattern = self.series.pattern();
        let parameters = scope.split(' ').filter_map(|word| word.split_once('='));
        let shown = parameters.filter(|(name, _)| pattern.parameters().any(|shown| shown == *name));
        let scope = pattern.scope(shown, None).ok()?;
        Some(Rendering { series: self.series.clone(), scope, value: self.spec.value })
    }

    /// Writes the key of the scope with as many parameters as are given. `false` if they are not those of the series, or a
    /// value could not be read back from a key.
    pub fn write_scope<'p>(
        &self,
        given: usize,
        value_of: impl Fn(&str) -> Option<&'p str>,
        scope: &mut String,
    ) -> bool {
        scope.clear();
        for name in &self.parameters {
            let Some(value) = value_of(name).filter(|value| is_value(value)) else { return false };
            let space = if scope.is_empty() { "" } else { " " };
            scope.extend([space, name, "=", value]);
        }
        given == self.parameters.len()
    }

    /// Parameters that the pattern does not show go into the key only.
    pub(crate) fn open_scope(
        &self,
        params: ScopeParams<'_>,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<OpenScope<'_>, ScopeError> {
        let mut given: Vec<&str> = params.parameters.iter().map(|(name, _)| *name).collect();
        given.sort_unstable();
        // Invariant: a scope has these parameters and no others, or one text could come from two scopes.
        if !given.iter().eq(&self.parameters) {
            let cut = |text: &str| text.chars().take(64).collect::<String>();
            let given = given.iter().take(20).map(|name| cut(name)).collect::<Vec<_>>().join(", ").into();
            return Err(ScopeError::Parameters { given, expected: self.parameters.join(", ").into() });
        }
        let pattern = self.series.pattern();
        let date = match params.date {
            None if pattern.needs_date() => Some(self.date_at(now())),
            date => date,
        };
        let parameters = params.parameters.iter().copied();
        let shown = parameters.clone().filter(|(name, _)| pattern.parameters().any(|shown| shown == *name));
        let scope = pattern.scope(shown, date)?;
        let key = ScopeKey::new(parameters, scope.period())?;
        Ok(OpenScope { entry: self, scope, scope_id: self.series.scope_id(&key) })
    }
}
