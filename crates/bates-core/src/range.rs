//! Half-open ranges of positions.

use std::fmt;

use bates_pattern::Position;

/// The positions from `from` up to, but not including, `to`. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PositionRange {
    from: u64,
    to: u64,
}

impl PositionRange {
    /// `None` if it is empty.
    pub const fn new(from: u64, to: u64) -> Option<Self> {
        if from < to { Some(Self { from, to }) } else { None }
    }

    pub const fn one(position: Position) -> Self {
        Self { from: position.value(), to: position.value() + 1 }
    }

    pub const fn from(self) -> u64 {
        self.from
    }

    /// The first position past it.
    pub const fn to(self) -> u64 {
        self.to
    }

    pub const fn count(self) -> u64 {
        self.to - self.from
    }

    pub(crate) fn split(self, count: u64) -> (Option<Self>, Option<Self>) {
        let at = self.from.saturating_add(count).min(self.to);
        (Self::new(self.from, at), Self::new(at, self.to))
    }

    /// Both as one, if `next` begins where this ends.
    pub(crate) fn joined(self, next: Self) -> Option<Self> {
        (self.to == next.from).then_some(Self { from: self.from, to: next.to })
    }
}

impl fmt::Display for PositionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.from, self.to)
    }
}

/// Positions handed to one caller, ascending: mostly one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenPositions {
    pub(crate) first: PositionRange,
    pub(crate) rest: Vec<PositionRange>,
}

impl From<PositionRange> for TakenPositions {
    fn from(first: PositionRange) -> Self {
        Self { first, rest: Vec::new() }
    }
}

impl TakenPositions {
    pub fn count(&self) -> u64 {
        self.first.count() + self.rest.iter().map(|range| range.count()).sum::<u64>()
    }

    pub fn ranges(&self) -> impl Iterator<Item = PositionRange> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    pub fn last(&self) -> u64 {
        self.rest.last().unwrap_or(&self.first).to - 1
    }

    pub fn positions(&self) -> impl Iterator<Item = u64> {
        self.ranges().flat_map(|range| range.from..range.to)
    }
}

/// Positions, as ascending ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet(Vec<PositionRange>);

impl RangeSet {
    /// The ranges may come in any order and overlap.
    pub fn of(ranges: impl IntoIterator<Item = PositionRange>) -> Self {
        let mut sorted: Vec<PositionRange> = ranges.into_iter().collect();
        sorted.sort_unstable();
        let mut joined: Vec<PositionRange> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match joined.last_mut() {
                Some(last) if range.from <= last.to => last.to = last.to.max(range.to),
                _ => joined.push(range),
            }
        }
        Self(joined)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = PositionRange> {
        self.0.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.count()).sum()
    }

    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        for range in &self.0 {
            let mut from = range.from;
            let first = other.0.partition_point(|taken| taken.to <= from);
            for taken in other.0[first..].iter().take_while(|taken| taken.from < range.to) {
                left.extend(PositionRange::new(from, taken.from));
                from = taken.to;
            }
            left.extend(PositionRange::new(from, range.to));
        }
        Self(left)
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::of(self.iter().chain(other.iter()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Vec<PositionRange>> {
        let range = (0_u64..60, 1_u64..12).prop_map(|(from, count)| PositionRange { from, to: from + count });
        prop::collection::vec(range, 0..12)
    }

    fn positions(ranges: impl IntoIterator<Item = PositionRange>) -> BTreeSet<u64> {
        ranges.into_iter().flat_map(|range| range.from..range.to).collect()
    }

    proptest! {
        #[test]
        fn range_sets_act_like_sets_of_positions(one in ranges(), other in ranges()) {
            let (left, right) = (RangeSet::of(one.clone()), RangeSet::of(other.clone()));
            let (one, other) = (positions(one), positions(other));
            prop_assert_eq!(positions(left.difference(&right).iter()), &one - &other);
            prop_assert_eq!(positions(left.union(&right).iter()), &one | &other);
            prop_assert_eq!(left.count(), one.len() as u64);
            for ranges in [&left, &left.difference(&right), &left.union(&right)] {
                let apart = ranges.0.windows(2).all(|pair| pair[0].to() < pair[1].from());
                prop_assert!(apart, "{:?} are not the fewest ranges", ranges);
            }
        }
    }
}
