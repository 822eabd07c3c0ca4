//! Positions granted to a scope and not handed out, ascending: mostly one range, seldom more.
//!
//! Invariant: a position leaves once, and never comes back unless no caller saw it.

use std::collections::VecDeque;

use super::TakeRequest;
use crate::range::{PositionRange, TakenPositions};

#[derive(Default)]
pub(super) struct HeldPositions {
    /// The first range, empty if `from == to`. Invariant: it is empty only if nothing is held.
    from: u64,
    to: u64,
    /// The other ranges. None begins where the one before ends.
    later: Option<Box<LaterRanges>>,
}

struct LaterRanges {
    /// Never empty.
    ranges: VecDeque<LaterRange>,
    count: u64,
}

struct LaterRange {
    range: PositionRange,
    /// Whether only adopted positions lie between it and the range before: the two are then released as one.
    is_bridged: bool,
}

impl HeldPositions {
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.to - self.from + self.later.as_ref().map_or(0, |later| later.count)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    pub(super) fn first(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.from)
    }

    /// Takes the first positions, a run only from the first range: all of them, or none.
    #[inline]
    pub(super) fn take(&mut self, wanted: TakeRequest) -> Option<TakenPositions> {
        let count = wanted.count();
        // A position stays in the range, so this path need not look at later ranges.
        if self.to - self.from > count {
            let first = PositionRange::new(self.from, self.from + count)?;
            self.from += count;
            return Some(first.into());
        }
        self.take_last(wanted)
    }

    #[cold]
    fn take_last(&mut self, wanted: TakeRequest) -> Option<TakenPositions> {
        let count = wanted.count();
        let is_held = if wanted.is_run() { self.to - self.from == count } else { self.count() >= count };
        if count == 0 || !is_held {
            return None;
        }
        let mut taken = TakenPositions::from(self.take_front(count)?);
        while taken.count() < count {
            taken.rest.push(self.take_front(count - taken.count())?);
        }
        Some(taken)
    }

    /// The first range, if any.
    #[inline]
    pub(super) fn first_range(&self) -> Option<PositionRange> {
        self.front()
    }

    /// Takes the positions of the first range up to `last`, which is one of them.
    #[inline]
    pub(super) fn take_through(&mut self, last: u64) {
        debug_assert!((self.from..self.to).contains(&last), "a position of the first range");
        self.from = last + 1;
        if self.from == self.to {
            self.advance();
        }
    }

    /// Like `take`; in a unique series, also takes a run from a later range.
    pub(super) fn take_anywhere(&mut self, wanted: TakeRequest, is_unique: bool) -> Option<TakenPositions> {
        let taken = self.take(wanted);
        if taken.is_none() && is_unique && wanted.is_run() { self.take_later(wanted.count()) } else { taken }
    }

    #[inline]
    fn front(&self) -> Option<PositionRange> {
        PositionRange::new(self.from, self.to)
    }

    fn take_front(&mut self, count: u64) -> Option<PositionRange> {
        let (taken, rest) = self.front()?.split(count);
        match rest {
            Some(rest) => self.from = rest.from(),
            None => self.advance(),
        }
        taken
    }

    /// Brings the next range to the front.
    #[cold]
    fn advance(&mut self) {
        self.from = self.to;
        if let Some(later) = &mut self.later
            && let Some(LaterRange { range: next, .. }) = later.ranges.pop_front()
        {
            (self.from, self.to) = (next.from(), next.to());
            later.count -= next.count();
        }
        self.later.take_if(|later| later.ranges.is_empty());
    }

    /// Adds a range granted past all held positions, without its `adopted` positions, which ascend.
    pub(super) fn hold(&mut self, range: PositionRange, adopted: impl IntoIterator<Item = u64>) {
        let mut is_bridged = self.end() == Some(range.from());
        let mut from = range.from();
        for hole in adopted.into_iter().chain([range.to()]) {
            if let Some(free) = PositionRange::new(from, hole) {
                self.hold_free(free, is_bridged);
                is_bridged = true;
            }
            from = hole + 1;
        }
    }

    fn end(&self) -> Option<u64> {
        let last = self.later.as_ref().and_then(|later| later.ranges.back()).map(|later| later.range.to());
        last.or((!self.is_empty()).then_some(self.to))
    }

    fn hold_free(&mut self, range: PositionRange, is_bridged: bool) {
        match (self.front(), &mut self.later) {
            (None, _) => (self.from, self.to) = (range.from(), range.to()),
            (Some(front), None) if front.joined(range).is_some() => self.to = range.to(),
            (Some(_), _) => {
                let later = self.later_ranges();
                later.count += range.count();
                match later.ranges.back_mut() {
                    Some(last) if let Some(joined) = last.range.joined(range) => last.range = joined,
                    _ => later.ranges.push_back(LaterRange { range, is_bridged }),
                }
            }
        }
    }

    /// Puts back a range that was taken from the front.
    pub(super) fn hold_again(&mut self, range: PositionRange) {
        match self.front() {
            None => (self.from, self.to) = (range.from(), range.to()),
            Some(front) if range.joined(front).is_some() => self.from = range.from(),
            Some(front) => {
                // Whether the two were bridged is no longer known, so they are not.
                let later = self.later_ranges();
                later.count += front.count();
                later.ranges.push_front(LaterRange { range: front, is_bridged: false });
                (self.from, self.to) = (range.from(), range.to());
            }
        }
    }

    /// Takes everything, ascending. Bridged ranges become one, with the adopted positions between them.
    pub(super) fn take_all(&mut self) -> Vec<PositionRange> {
        let mut all: Vec<PositionRange> = self.front().into_iter().collect();
        for LaterRange { range, is_bridged } in self.later.take().into_iter().flat_map(|later| later.ranges) {
            match all.last_mut() {
                Some(last) if is_bridged => {
                    *last = PositionRange::new(last.from(), range.to()).unwrap_or(*last);
                }
                _ => all.push(range),
            }
        }
        self.from = self.to;
        all
    }

    /// Takes a run from the first later range that holds all of it.
    fn take_later(&mut self, count: u64) -> Option<TakenPositions> {
        let later = self.later.as_mut().filter(|_| count > 0)?;
        let at = later.ranges.iter().position(|later| later.range.count() >= count)?;
        let (first, rest) = later.ranges[at].range.split(count);
        // A taken position lies between the neighbours now, so they are no longer bridged.
        match rest {
            Some(range) => later.ranges[at] = LaterRange { range, is_bridged: false },
            None => drop(later.ranges.remove(at)),
        }
        if let (None, Some(next)) = (rest, later.ranges.get_mut(at)) {
            next.is_bridged = false;
        }
        later.count -= count;
        self.later.take_if(|later| later.ranges.is_empty());
        first.map(TakenPositions::from)
    }

    pub(super) fn longest_run(&self) -> u64 {
        let later = self.later.iter().flat_map(|later| &later.ranges).map(|later| later.range.count());
        later.fold(self.to - self.from, u64::max)
    }

    /// If there are several ranges, takes all: those to give up before a run of `count`, and the rest up to the end. The
    /// rest begins with the first range that holds the run, or with the last range.
    pub(super) fn give_up_before_run(&mut self, count: u64) -> Option<(Vec<PositionRange>, PositionRange)> {
        let later = self.later.take()?;
        let front = self.front().map(|range| LaterRange { range, is_bridged: false });
        self.from = self.to;
        let mut all: Vec<LaterRange> = front.into_iter().chain(later.ranges).collect();
        // Only ranges that reach the end, with nothing of other holders in between, can be granted again.
        let joined = all.iter().rposition(|range| !range.is_bridged).unwrap_or(0);
        let last = all.len().checked_sub(1)?;
        let at = (joined..last).find(|at| all[*at].range.count() >= count).unwrap_or(last);
        let rest = PositionRange::new(all[at].range.from(), all[last].range.to())?;
        all.truncate(at);
        Some((all.into_iter().map(|before| before.range).collect(), rest))
    }

    fn later_ranges(&mut self) -> &mut LaterRanges {
        self.later.get_or_insert_with(|| Box::new(LaterRanges { ranges: VecDeque::new(), count: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn range(from: u64, to: u64) -> PositionRange {
        PositionRange::new(from, to).unwrap()
    }

    #[test]
    fn adopted_positions_do_not_split_the_released_ranges() {
        let mut held = HeldPositions::default();
        held.hold(range(1, 10), [1, 4, 5]);
        assert_eq!(held.count(), 6);
        // The next range begins with adopted positions; the one after does not adjoin.
        held.hold(range(10, 20), [10, 11, 15]);
        held.hold(range(30, 33), [30]);
        let taken: Vec<u64> = held.take(TakeRequest::Any(3)).unwrap().positions().collect();
        assert_eq!(taken, [2, 3, 6]);
        assert_eq!(held.take_all(), [range(7, 20), range(31, 33)]);
    }

    /// Grants ascend, with or without a hole before them, and with adopted positions.
    #[derive(Clone, Debug)]
    enum Step {
        Grant { hole: u64, count: u64, adopted: Vec<u64> },
        Take(u64),
        TakeAndPutBack(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let grant = (0_u64..3, 1_u64..20, prop::collection::btree_set(0_u64..19, 0..8));
        prop_oneof![
            grant.prop_map(|(hole, count, adopted)| {
                let adopted = adopted.into_iter().filter(|at| at + 1 < count).collect();
                Step::Grant { hole, count, adopted }
            }),
            (0_u64..25).prop_map(Step::Take),
            (1_u64..25).prop_map(Step::TakeAndPutBack),
        ]
    }

    proptest! {
        #[test]
        fn held_positions_act_like_a_queue(steps in prop::collection::vec(step(), 1..60)) {
            let (mut held, mut model, mut cursor) = (HeldPositions::default(), VecDeque::new(), 1);
            let mut all_adopted = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Grant { hole, count, adopted } => {
                        let from = cursor + hole;
                        let adopted: Vec<u64> = adopted.into_iter().map(|at| from + at).collect();
                        held.hold(range(from, from + count), adopted.iter().copied());
                        model.extend((from..from + count).filter(|at| !adopted.contains(at)));
                        all_adopted.extend(adopted);
                        cursor += hole + count;
                    }
                    Step::Take(count) => {
                        let taken = held.take(TakeRequest::Any(count)).map(|taken| taken.positions().collect::<Vec<_>>());
                        let room = count > 0 && model.len() as u64 >= count;
                        let expected = room.then(|| model.drain(..usize::try_from(count).unwrap()).collect());
                        prop_assert_eq!(taken, expected);
                    }
                    Step::TakeAndPutBack(count) => {
                        let taken = held.take(TakeRequest::Any(count)).map(|taken| taken.ranges().collect::<Vec<_>>());
                        taken.into_iter().flatten().rev().for_each(|range| held.hold_again(range));
                    }
                }
                prop_assert_eq!(held.count(), model.len() as u64);
                prop_assert_eq!(held.first(), model.front().copied());
                prop_assert_eq!(held.is_empty(), model.is_empty());
            }
            let all = held.take_all();
            prop_assert!(all.windows(2).all(|pair| pair[0].to() <= pair[1].from()));
            let all = all.into_iter().flat_map(|range| range.from()..range.to());
            let (adopted, all): (Vec<u64>, Vec<u64>) = all.partition(|at| all_adopted.contains(at));
            prop_assert_eq!(all, Vec::from(model));
            prop_assert!(adopted.iter().all(|at| all_adopted.contains(at)));
            prop_assert!(held.is_empty() && held.count() == 0);
        }
    }

    #[test]
    fn only_ranges_before_the_first_that_holds_the_run_are_given_up() {
        let held = |count| {
            let mut held = HeldPositions::default();
            held.hold(range(1, 10), []);
            held.hold(range(20, 60), [25, 45, 50]);
            (held.give_up_before_run(count), held.is_empty())
        };
        let short = vec![range(1, 10), range(20, 25)];
        assert_eq!(held(8), (Some((short.clone(), range(26, 60))), true));
        let all = vec![range(1, 10), range(20, 25), range(26, 45), range(46, 50)];
        assert_eq!(held(30), (Some((all, range(51, 60))), true));
        assert_eq!(held(19), (Some((short, range(26, 60))), true));
        let mut held = HeldPositions::default();
        held.hold(range(1, 10), []);
        assert_eq!((held.give_up_before_run(30), held.count()), (None, 9), "it is one range");
    }

    proptest! {
        #[test]
        fn a_run_comes_from_one_held_range_and_leaves_all_else(
            grants in prop::collection::vec((0_u64..3, 1_u64..20, prop::collection::btree_set(0_u64..19, 0..6)), 1..8),
            takes in prop::collection::vec((1_u64..25, any::<bool>()), 1..20),
        ) {
            let (mut held, mut model, mut cursor) = (HeldPositions::default(), BTreeSet::new(), 1);
            let mut all_adopted = BTreeSet::new();
            for (hole, count, adopted) in grants {
                let from = cursor + hole;
                let adopted: Vec<u64> = adopted.into_iter().filter(|at| at + 1 < count).map(|at| from + at).collect();
                held.hold(range(from, from + count), adopted.iter().copied());
                model.extend((from..from + count).filter(|at| !adopted.contains(at)));
                all_adopted.extend(adopted);
                cursor = from + count;
            }
            for (count, is_anywhere) in takes {
                let fits = |from: &u64| (*from..from + count).all(|at| model.contains(&at));
                let first = if is_anywhere { model.iter().copied().find(fits) } else { model.first().copied().filter(fits) };
                let taken = held.take_anywhere(TakeRequest::Run(count), is_anywhere);
                let taken: Option<Vec<u64>> = taken.map(|taken| taken.positions().collect());
                prop_assert_eq!(&taken, &first.map(|from| (from..from + count).collect::<Vec<u64>>()));
                model.retain(|at| !taken.iter().flatten().any(|taken| taken == at));
                prop_assert_eq!((held.count(), held.first()), (model.len() as u64, model.first().copied()));
            }
            let all = held.take_all().into_iter().flat_map(|range| range.from()..range.to());
            let all: BTreeSet<u64> = all.filter(|at| !all_adopted.contains(at)).collect();
            prop_assert_eq!(all, model, "no taken position is released");
        }
    }
}
