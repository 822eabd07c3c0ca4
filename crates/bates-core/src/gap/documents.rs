//! The positions of the user's own documents, and the positions that the rules accept. Owns the port to these documents.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use bates_pattern::{Pattern, Position, Scope};

use crate::range::{PositionRange, RangeSet};
use crate::scope::ScopeKey;
use crate::series::SeriesEntry;

/// Documents that the user has saved elsewhere, in a table or a bucket.
pub trait DocumentSource: Send + Sync + 'static {
    /// Calls `take` with the number of each document, in any order.
    fn numbers<'a>(&'a self, take: &'a mut (dyn FnMut(&str) + Send)) -> ReadNumbersFuture<'a>;
}

/// Returns why reading failed, if it did.
pub type ReadNumbersFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Box<str>>> + Send + 'a>>;

#[derive(Default)]
pub(crate) struct DocumentPositions {
    scopes: HashMap<ScopeKey, Vec<PositionRange>>,
    /// Texts that are not numbers of the series.
    pub(crate) unreadable: u64,
}

impl DocumentPositions {
    /// Adjacent numbers that come in ascending order are joined, so that they need little memory.
    pub(crate) fn add(&mut self, pattern: &Pattern, number: &str) {
        let found = pattern.parse(number).ok().and_then(|parsed| {
            let scope = ScopeKey::new(parsed.parameters(), parsed.period()).ok()?;
            Some((scope, PositionRange::one(parsed.position())))
        });
        let Some((scope, range)) = found else {
            self.unreadable += 1;
            return;
        };
        let ranges = self.scopes.entry(scope).or_default();
        match ranges.last_mut() {
            Some(last) if let Some(joined) = last.joined(range) => *last = joined,
            _ => ranges.push(range),
        }
    }

    pub(crate) fn of(&self, scope: &ScopeKey) -> RangeSet {
        RangeSet::of(self.scopes.get(scope).into_iter().flatten().copied())
    }
}

/// In a longer range, every position counts as accepted.
const WALK_MAX: u64 = 1_000_000;

pub(crate) struct AcceptedPositions {
    /// `None` if every position counts as accepted: no rule rejects any, the rules have changed, or the text of a number
    /// depends on the day of its issue.
    scope: Option<Scope>,
}

impl AcceptedPositions {
    pub(crate) fn of(entry: &SeriesEntry, key: &ScopeKey) -> Self {
        let pattern = entry.series.pattern();
        if pattern.reject().is_empty() || entry.has_changed_rules {
            return Self { scope: None };
        }
        Self { scope: entry.scope_in_period(key) }
    }

    pub(crate) fn within(&self, range: PositionRange) -> RangeSet {
        let bounds = Position::new(range.from()).zip(Position::new(range.to() - 1));
        let (Some(scope), Some((first, last)), 0..=WALK_MAX) = (&self.scope, bounds, range.count()) else {
            return RangeSet::of([range]);
        };
        let (mut walk, mut text) = (scope.accepted(first, last), Vec::new());
        let positions = std::iter::from_fn(|| {
            text.clear();
            walk.next_into(&mut text)
        });
        RangeSet::of(positions.map(PositionRange::one))
    }
}

impl SeriesEntry {
    /// The scope, unless its numbers show a day within the period.
    pub(super) fn scope_in_period(&self, key: &ScopeKey) -> Option<Scope> {
        let pattern = self.series.pattern();
        // The key may also have parameters that the pattern does not show.
        let shown: Vec<&str> = pattern.parameters().collect();
        let (parameters, period) = key.parts();
        let parameters: Vec<_> = parameters.filter(|(name, _)| shown.contains(name)).collect();
        pattern.scope_in_period(parameters, period)
    }
}
