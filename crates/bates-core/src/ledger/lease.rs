//! How a lease of a client ends: what of it is lost, and which report is refused.

use crate::gap::{Missing, Reason};
use crate::lease::ClientLease;
use crate::range::{Lease, Ranges};
use crate::scope::Place;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    Ended {
        place: Place,
        lost: Ranges,
    },
    /// A range that was returned as unused is not wholly within the lease. The lease stays open.
    Outside {
        returned: Lease,
        leased: Vec<Lease>,
    },
    /// No such lease, or it has ended before.
    Unknown,
}

impl LeaseEnd {
    /// Ends a lease: the `unused` positions are lost, all others were used. Only if it has ended, the store writes: it
    /// removes the lease and adds what is missing.
    pub fn decide(lease: Option<ClientLease>, unused: &[Lease]) -> Self {
        let Some(ClientLease { place, ranges: leased, .. }) = lease else { return Self::Unknown };
        let held = Ranges::of(leased.iter().copied());
        let is_outside = |range: &Lease| !Ranges::of([*range]).without(&held).is_empty();
        match unused.iter().copied().find(is_outside) {
            Some(returned) => Self::Outside { returned, leased },
            None => Self::Ended { place, lost: Ranges::of(unused.iter().copied()) },
        }
    }

    /// The gaps of a lease that has ended, and their scope.
    pub fn missing(&self) -> Option<(&Place, Vec<Missing>)> {
        let Self::Ended { place, lost } = self else { return None };
        Some((place, Missing::all(lost.iter(), Reason::LeaseLost).collect()))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::scope::ScopeKey;

    fn range(from: u64, to: u64) -> Lease {
        Lease::new(from, to).unwrap()
    }

    #[test]
    fn what_was_not_used_is_lost_and_what_was_never_leased_is_refused() {
        let place = Place { series: "key".parse().unwrap(), scope: ScopeKey::new([], None).unwrap() };
        let lease = || ClientLease {
            id: Uuid::nil(),
            place: place.clone(),
            ranges: vec![range(1, 5), range(5, 8), range(10, 12)],
            who: "someone".into(),
            at: Timestamp::UNIX_EPOCH,
        };
        let end = |unused: &[Lease]| LeaseEnd::decide(Some(lease()), unused);
        for (unused, lost) in [
            (vec![], vec![]),
            (vec![range(4, 6), range(11, 12)], vec![range(4, 6), range(11, 12)]),
            (vec![range(6, 8), range(5, 7)], vec![range(5, 8)]),
        ] {
            let ended = end(&unused);
            let missing: Vec<Missing> = Missing::all(lost.clone(), Reason::LeaseLost).collect();
            assert_eq!(ended.missing(), Some((&place, missing)));
            assert_eq!(ended, LeaseEnd::Ended { place: place.clone(), lost: Ranges::of(lost) });
        }
        for outside in [range(7, 9), range(8, 10), range(0, 2), range(11, 13)] {
            let refused = end(&[range(1, 3), outside]);
            assert_eq!(refused.missing(), None);
            assert_eq!(refused, LeaseEnd::Outside { returned: outside, leased: lease().ranges });
        }
        assert_eq!(LeaseEnd::decide(None, &[]), LeaseEnd::Unknown);
    }
}
