//! Whether one caller has all that another would have: a caller gives tokens at most what it has itself.

use super::{Permissions, Right, ScopeRule, SeriesSet};

impl Permissions {
    /// Whether another caller may do nothing that this one may not. A caller gives others at most what it has itself.
    pub fn covers(&self, other: &Self) -> bool {
        self.first_beyond(other).is_none()
    }

    /// What another caller has more of.
    pub fn first_beyond(&self, other: &Self) -> Option<&'static str> {
        let covers_scope = |rule: &ScopeRule| {
            let same = other.scope.iter().filter(|known| known.parameter == rule.parameter);
            same.flat_map(|known| &known.values).all(|value| rule.values.contains(value))
                && other.scope.iter().any(|known| known.parameter == rule.parameter)
        };
        let covers_rate = |own: Option<u64>, other: Option<u64>| {
            own.is_none_or(|own| other.is_some_and(|other| other <= own))
        };
        let (own_limits, limits) = (self.limits, other.limits);
        let covers_limits = limits.series_max <= own_limits.series_max
            && limits.scopes_max <= own_limits.scopes_max
            && limits.words_max <= own_limits.words_max;
        let covered = [
            ("rights", Right::ALL.into_iter().all(|right| self.has(right) || !other.has(right))),
            ("series", self.series.covers(&other.series)),
            ("scopes", self.scope.iter().all(covers_scope)),
            ("numbers per second", covers_rate(self.rates.rate, other.rates.rate)),
            ("numbers per day", covers_rate(self.rates.quota, other.rates.quota)),
            ("series, scopes or words to define", self.series == SeriesSet::All || covers_limits),
        ];
        covered.into_iter().find(|(_, is_covered)| !is_covered).map(|(what, _)| what)
    }
}
