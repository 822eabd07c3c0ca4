//! Sets of positions as ranges: what is done with them costs as much as there are ranges, not positions.

use crate::lease::Lease;

/// Positions, as ranges that ascend, do not touch and do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Lease>);

impl Ranges {
    /// The positions of these ranges, in whatever order they come and however they overlap.
    pub fn of(leases: impl IntoIterator<Item = Lease>) -> Self {
        let mut sorted: Vec<Lease> = leases.into_iter().collect();
        sorted.sort_unstable();
        let mut joined: Vec<Lease> = Vec::with_capacity(sorted.len());
        for lease in sorted {
            match joined.last_mut() {
                Some(last) if lease.from() <= last.to() => {
                    let to = lease.to().max(last.to());
                    *last = Lease::new(last.from(), to).unwrap_or(*last);
                }
                _ => joined.push(lease),
            }
        }
        Self(joined)
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Lease> {
        self.0.iter().copied()
    }

    /// How many ranges.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many positions.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.count()).sum()
    }

    /// The positions of this that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut others = other.0.iter().peekable();
        for range in &self.0 {
            let mut from = range.from();
            while let Some(taken) = others.peek() {
                if taken.to() <= from {
                    others.next();
                    continue;
                }
                if taken.from() >= range.to() {
                    break;
                }
                left.extend(Lease::new(from, taken.from()));
                from = taken.to();
                // What reaches into the next range is looked at again there.
                if taken.to() > range.to() {
                    break;
                }
                others.next();
            }
            left.extend(Lease::new(from, range.to()));
        }
        Self(left)
    }

    /// The positions of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::of(self.iter().chain(other.iter()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn leases() -> impl Strategy<Value = Vec<Lease>> {
        let lease = (0_u64..60, 1_u64..12).prop_map(|(from, count)| Lease::new(from, from + count).unwrap());
        prop::collection::vec(lease, 0..12)
    }

    fn positions(leases: impl IntoIterator<Item = Lease>) -> BTreeSet<u64> {
        leases.into_iter().flat_map(|lease| lease.from()..lease.to()).collect()
    }

    proptest! {
        #[test]
        fn ranges_are_sets_of_positions(one in leases(), other in leases()) {
            let (left, right) = (Ranges::of(one.clone()), Ranges::of(other.clone()));
            let (one, other) = (positions(one), positions(other));
            prop_assert_eq!(positions(left.without(&right).iter()), &one - &other);
            prop_assert_eq!(positions(left.and(&right).iter()), &one | &other);
            prop_assert_eq!(left.count(), one.len() as u64);
            for ranges in [&left, &left.without(&right), &left.and(&right)] {
                let apart = ranges.0.windows(2).all(|pair| pair[0].to() < pair[1].from());
                prop_assert!(apart, "{:?} are not the fewest ranges", ranges);
            }
        }
    }
}
