//! How far a series has come: the highest cursor that this node has seen in any of its scopes. All scopes of a series
//! end alike, so the one that is furthest is the one that runs out first. Nothing is kept for a scope; one figure for a
//! series, or for each of a few periods where it starts again.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Periods of a series that are remembered; the earliest are forgotten first.
const PERIODS_MAX: usize = 16;

/// The furthest cursor of each period, the first position not granted; of a series that never starts again there is one,
/// without a name. The names of periods ascend as they do.
#[derive(Debug, Default)]
pub(crate) struct Reach(Mutex<BTreeMap<Box<str>, u64>>);

impl Reach {
    /// Everything below `next` was granted in some scope of the period.
    pub(crate) fn extend(&self, period: Option<&str>, next: u64) {
        let period = period.unwrap_or_default();
        let mut all = self.0.lock();
        if let Some(known) = all.get_mut(period) {
            *known = next.max(*known);
            return;
        }
        all.insert(period.into(), next);
        if all.len() > PERIODS_MAX {
            all.pop_first();
        }
    }

    /// A tail was given back. If another scope was between the two, its next grant shows it.
    pub(crate) fn draw_back(&self, period: Option<&str>, from: u64, to: u64) {
        if let Some(known) = self.0.lock().get_mut(period.unwrap_or_default()).filter(|known| **known == from)
        {
            *known = to;
        }
    }

    /// The first position that no scope of the period has come to; `None` if this node was granted nothing in it.
    pub(crate) fn next(&self, period: Option<&str>) -> Option<u64> {
        self.0.lock().get(period.unwrap_or_default()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_that_is_furthest_counts() {
        let reach = Reach::default();
        assert_eq!(reach.next(None), None, "nothing is known before a grant");
        for next in [33, 257, 65] {
            reach.extend(None, next);
        }
        assert_eq!(reach.next(None), Some(257));
        reach.draw_back(None, 65, 40);
        assert_eq!(reach.next(None), Some(257), "another scope is further");
        reach.draw_back(None, 257, 200);
        assert_eq!(reach.next(None), Some(200));
    }

    #[test]
    fn each_period_begins_anew() {
        let reach = Reach::default();
        reach.extend(Some("2026"), 900);
        reach.extend(Some("2027"), 3);
        assert_eq!((reach.next(Some("2026")), reach.next(Some("2027"))), (Some(900), Some(3)));
        assert_eq!(reach.next(Some("2028")), None);
    }

    #[test]
    fn memory_is_bounded_and_the_earliest_periods_are_forgotten() {
        let reach = Reach::default();
        for year in (1_000..9_999).rev() {
            reach.extend(Some(&year.to_string()), 1);
        }
        assert_eq!(reach.0.lock().len(), PERIODS_MAX);
        assert!(reach.next(Some("9998")).is_some() && reach.next(Some("1000")).is_none());
    }
}
