//! Which positions of a scope are numbers: those that the rules of its series do not reject.

use bates_pattern::{Position, Scope};

use crate::range::{Lease, Ranges};
use crate::scope::ScopeKey;
use crate::series::Entry;

/// A range of more positions is not walked: each counts as a number.
const WALK_MAX: u64 = 1_000_000;

pub(crate) struct AcceptedPositions {
    /// `None` if each position counts as a number: no rule rejects any, the rules were others when some were issued, or
    /// what a number shows depends on the day on which it was issued.
    scope: Option<Scope>,
}

impl AcceptedPositions {
    pub(crate) fn of(entry: &Entry, key: &ScopeKey) -> Self {
        let pattern = entry.series.pattern();
        if pattern.reject().is_empty() || entry.has_changed_rules {
            return Self { scope: None };
        }
        // The key also has parameters that the pattern does not show.
        let shown: Vec<&str> = pattern.parameters().collect();
        let (parameters, period) = key.parts();
        let parameters: Vec<_> = parameters.filter(|(name, _)| shown.contains(name)).collect();
        Self { scope: pattern.scope_in(parameters, period) }
    }

    pub(crate) fn within(&self, range: Lease) -> Ranges {
        let (first, last) = (Position::new(range.from()), Position::new(range.to() - 1));
        let (Some(scope), Some(first), Some(last), 0..=WALK_MAX) = (&self.scope, first, last, range.count())
        else {
            return Ranges::of([range]);
        };
        let (mut walk, mut text) = (scope.accepted(first, last), Vec::new());
        let positions = std::iter::from_fn(|| {
            text.clear();
            walk.next_into(&mut text)
        });
        Ranges::of(positions.filter_map(|position| Lease::new(position.value(), position.value() + 1)))
    }
}
