//! How a client lease ends: which positions are lost, and which report is refused.

use crate::gap::{GapReason, MissingRange};
use crate::lease::{ClientLease, LeaseOwner};
use crate::range::{PositionRange, RangeSet};
use crate::scope::ScopeId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    Ended {
        scope_id: ScopeId,
        lost: RangeSet,
    },
    /// A range that was returned as unused is not wholly within the lease. The lease stays open.
    Outside {
        returned: PositionRange,
        leased: Vec<PositionRange>,
    },
    /// No such lease, or it has ended before.
    Unknown,
}

impl LeaseEnd {
    /// Ends a lease: the `unused` positions are lost, all others were used. Only for `Ended` the store removes the lease
    /// and adds its gaps.
    pub fn decide(lease: Option<ClientLease>, unused: &[PositionRange], owner: &LeaseOwner) -> Self {
        // To another caller, a lease does not exist.
        let Some(ClientLease { scope_id, ranges: leased, .. }) = lease.filter(|lease| owner.owns(lease))
        else {
            return Self::Unknown;
        };
        let held = RangeSet::of(leased.iter().copied());
        let is_outside = |range: &PositionRange| !RangeSet::of([*range]).difference(&held).is_empty();
        match unused.iter().copied().find(is_outside) {
            Some(returned) => Self::Outside { returned, leased },
            None => Self::Ended { scope_id, lost: RangeSet::of(unused.iter().copied()) },
        }
    }

    /// The gaps of a lease that has ended, and their scope.
    pub fn missing(&self) -> Option<(&ScopeId, Vec<MissingRange>)> {
        let Self::Ended { scope_id, lost } = self else { return None };
        Some((scope_id, MissingRange::all(lost.iter(), GapReason::LeaseLost).collect()))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::scope::ScopeKey;

    fn range(from: u64, to: u64) -> PositionRange {
        PositionRange::new(from, to).unwrap()
    }

    #[test]
    fn unused_positions_are_lost_and_positions_outside_the_lease_are_refused() {
        let scope_id = ScopeId { series: "key".parse().unwrap(), scope: ScopeKey::new([], None).unwrap() };
        let lease = || ClientLease {
            id: Uuid::nil(),
            scope_id: scope_id.clone(),
            ranges: vec![range(1, 5), range(5, 8), range(10, 12)],
            caller: "someone".into(),
            at: Timestamp::UNIX_EPOCH,
        };
        let end = |unused: &[PositionRange]| LeaseEnd::decide(Some(lease()), unused, &LeaseOwner::Any);
        for (unused, lost) in [
            (vec![], vec![]),
            (vec![range(4, 6), range(11, 12)], vec![range(4, 6), range(11, 12)]),
            (vec![range(6, 8), range(5, 7)], vec![range(5, 8)]),
        ] {
            let ended = end(&unused);
            let missing: Vec<MissingRange> = MissingRange::all(lost.clone(), GapReason::LeaseLost).collect();
            assert_eq!(ended.missing(), Some((&scope_id, missing)));
            assert_eq!(ended, LeaseEnd::Ended { scope_id: scope_id.clone(), lost: RangeSet::of(lost) });
        }
        for outside in [range(7, 9), range(8, 10), range(0, 2), range(11, 13)] {
            let refused = end(&[range(1, 3), outside]);
            assert_eq!(refused.missing(), None);
            assert_eq!(refused, LeaseEnd::Outside { returned: outside, leased: lease().ranges });
        }
        assert_eq!(LeaseEnd::decide(None, &[], &LeaseOwner::Any), LeaseEnd::Unknown);
    }
}
