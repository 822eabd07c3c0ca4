//! The highest cursor that this node has seen in a series. All scopes of a series end alike, so the furthest runs out
//! first. Kept per series, or per period where the numbering starts again; never per scope.

use parking_lot::Mutex;

/// Periods remembered; the earliest are forgotten first.
const PERIODS_MAX: usize = 16;

/// The furthest cursor of each period; one without a name where the series never starts again.
#[derive(Debug, Default)]
pub(crate) struct Reach(Mutex<Vec<Furthest>>);

#[derive(Debug)]
struct Furthest {
    period: Box<str>,
    next: u64,
}

impl Reach {
    /// Everything below `next` was granted in some scope of the period.
    pub(crate) fn extend(&self, period: Option<&str>, next: u64) {
        let period = period.unwrap_or_default();
        let mut all = self.0.lock();
        if let Some(known) = all.iter_mut().find(|known| *known.period == *period) {
            known.next = known.next.max(next);
            return;
        }
        all.push(Furthest { period: period.into(), next });
        if all.len() > PERIODS_MAX {
            let earliest = all.iter().enumerate().min_by(|a, b| a.1.period.cmp(&b.1.period));
            let earliest = earliest.map(|(at, _)| at);
            all.swap_remove(earliest.unwrap_or_default());
        }
    }

    /// A tail was returned: the cursor goes back. A scope in between is seen with its next grant.
    pub(crate) fn draw_back(&self, period: Option<&str>, from: u64, to: u64) {
        let period = period.unwrap_or_default();
        let mut all = self.0.lock();
        if let Some(known) = all.iter_mut().find(|known| *known.period == *period && known.next == from) {
            known.next = to;
        }
    }

    /// `None` if this node was granted nothing in the period.
    pub(crate) fn next(&self, period: Option<&str>) -> Option<u64> {
        let period = period.unwrap_or_default();
        self.0.lock().iter().find(|known| *known.period == *period).map(|known| known.next)
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
