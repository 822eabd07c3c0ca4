//! Which positions of a scope are numbers: those that the rules of its series do not reject.

use bates_pattern::{Position, Scope};

use super::Entry;
use crate::lease::Lease;
use crate::place::ScopeKey;

/// A range of more positions is not walked: each counts as a number.
const WALK_MAX: u64 = 1_000_000;

/// The rules of a scope.
pub(super) struct AcceptedPositions {
    /// `None` if each position counts as a number: no rule rejects any, the rules were others when some were issued, or
    /// what a number shows depends on the day on which it was issued.
    scope: Option<Scope>,
}

impl AcceptedPositions {
    pub(super) fn of(entry: &Entry, key: &ScopeKey) -> Self {
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

    /// The numbers of a range, as the fewest ranges.
    pub(super) fn within(&self, range: Lease) -> Vec<Lease> {
        let (first, last) = (Position::new(range.from()), Position::new(range.to() - 1));
        let (Some(scope), Some(first), Some(last)) = (&self.scope, first, last) else { return vec![range] };
        if range.count() > WALK_MAX {
            return vec![range];
        }
        let (mut runs, mut text): (Vec<Lease>, _) = (Vec::new(), Vec::new());
        let mut walk = scope.accepted(first, last);
        while let Some(position) = walk.next_into(&mut text) {
            text.clear();
            let position = position.value();
            let joined = runs.last().filter(|run| run.to() == position).copied();
            let from = joined.map_or(position, Lease::from);
            if joined.is_some() {
                runs.pop();
            }
            runs.extend(Lease::new(from, position + 1));
        }
        runs
    }
}
