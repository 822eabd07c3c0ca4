//! Positions granted to a scope and not handed out, ascending: mostly one range, the rest apart.
//!
//! Invariant: a position leaves once, and never comes back unless no caller saw it.

use std::collections::VecDeque;

use super::TakeRequest;
use crate::range::{PositionRange, TakenPositions};

#[derive(Default)]
pub(super) struct HeldPositions {
    /// The range in use, empty if `from == to`. Invariant: it is empty only if nothing is held.
    from: u64,
    to: u64,
    /// Ranges that do not adjoin it.
    later: Option<Box<LaterRuns>>,
}

struct LaterRuns {
    /// Never empty.
    runs: VecDeque<Run>,
    count: u64,
}

struct Run {
    range: PositionRange,
    /// Whether only adopted positions lie between it and the range before.
    is_bridged: bool,
}

impl HeldPositions {
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.to - self.from + self.later.as_ref().map_or(0, |behind| behind.count)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    pub(super) fn first(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.from)
    }

    /// Takes positions from the front, a run from the range in use: all of them, or none.
    #[inline]
    pub(super) fn take(&mut self, wanted: TakeRequest) -> Option<TakenPositions> {
        let count = wanted.count();
        // One always stays in the range, so that this path need not look at what comes behind it.
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

    /// Like `take`; where no order is promised, a run may lie behind others.
    pub(super) fn take_anywhere(&mut self, wanted: TakeRequest, is_unique: bool) -> Option<TakenPositions> {
        let taken = self.take(wanted);
        if taken.is_none() && is_unique && wanted.is_run() { self.take_later(wanted.count()) } else { taken }
    }

    fn take_front(&mut self, count: u64) -> Option<PositionRange> {
        let (taken, rest) = PositionRange::new(self.from, self.to)?.split(count);
        match rest {
            Some(rest) => self.from = rest.from(),
            None => self.advance(),
        }
        taken
    }

    /// Brings the next range to the front.
    fn advance(&mut self) {
        self.from = self.to;
        if let Some(behind) = &mut self.later
            && let Some(Run { range: next, .. }) = behind.runs.pop_front()
        {
            (self.from, self.to) = (next.from(), next.to());
            behind.count -= next.count();
        }
        self.later.take_if(|behind| behind.runs.is_empty());
    }

    /// Adds a lease granted behind all that is held, without its adopted positions (`aside`, ascending).
    pub(super) fn hold(&mut self, lease: PositionRange, adopted: impl IntoIterator<Item = u64>) {
        let mut is_bridged = self.end() == Some(lease.from());
        let mut from = lease.from();
        for hole in adopted.into_iter().chain([lease.to()]) {
            if let Some(run) = PositionRange::new(from, hole) {
                self.hold_run(run, is_bridged);
                is_bridged = true;
            }
            from = hole + 1;
        }
    }

    fn end(&self) -> Option<u64> {
        let last = self.later.as_ref().and_then(|behind| behind.runs.back()).map(|run| run.range.to());
        last.or((!self.is_empty()).then_some(self.to))
    }

    fn hold_run(&mut self, lease: PositionRange, is_bridged: bool) {
        match (PositionRange::new(self.from, self.to), &mut self.later) {
            (None, _) => (self.from, self.to) = (lease.from(), lease.to()),
            (Some(front), None) if front.joined(lease).is_some() => self.to = lease.to(),
            (Some(_), _) => {
                let behind = self.later_runs();
                behind.count += lease.count();
                match behind.runs.back_mut() {
                    Some(last) if let Some(joined) = last.range.joined(lease) => last.range = joined,
                    _ => behind.runs.push_back(Run { range: lease, is_bridged }),
                }
            }
        }
    }

    /// Puts back what was taken from the front.
    pub(super) fn hold_again(&mut self, lease: PositionRange) {
        match PositionRange::new(self.from, self.to) {
            None => (self.from, self.to) = (lease.from(), lease.to()),
            Some(front) if lease.joined(front).is_some() => self.from = lease.from(),
            Some(front) => {
                // Whether the two were bridged is no longer known, so they are not.
                let behind = self.later_runs();
                behind.count += front.count();
                behind.runs.push_front(Run { range: front, is_bridged: false });
                (self.from, self.to) = (lease.from(), lease.to());
            }
        }
    }

    /// Takes everything, ascending. Adopted positions lie within a range if nothing else lies between its parts.
    pub(super) fn take_all(&mut self) -> Vec<PositionRange> {
        let mut all: Vec<PositionRange> = PositionRange::new(self.from, self.to).into_iter().collect();
        for Run { range: lease, is_bridged } in self.later.take().into_iter().flat_map(|behind| behind.runs) {
            match all.last_mut() {
                Some(last) if is_bridged => {
                    *last = PositionRange::new(last.from(), lease.to()).unwrap_or(*last);
                }
                _ => all.push(lease),
            }
        }
        self.from = self.to;
        all
    }

    /// Takes a run from the first range behind the one in use that holds all of it.
    fn take_later(&mut self, count: u64) -> Option<TakenPositions> {
        let behind = self.later.as_mut().filter(|_| count > 0)?;
        let at = behind.runs.iter().position(|run| run.range.count() >= count)?;
        let (first, rest) = behind.runs[at].range.split(count);
        // What was taken lies between the neighbours now, so they are no longer bridged.
        match rest {
            Some(lease) => behind.runs[at] = Run { range: lease, is_bridged: false },
            None => drop(behind.runs.remove(at)),
        }
        if let (None, Some(next)) = (rest, behind.runs.get_mut(at)) {
            next.is_bridged = false;
        }
        behind.count -= count;
        if behind.runs.is_empty() {
            self.later = None;
        }
        first.map(TakenPositions::from)
    }

    pub(super) fn longest_run(&self) -> u64 {
        let behind = self.later.iter().flat_map(|behind| &behind.runs).map(|run| run.range.count());
        behind.fold(self.to - self.from, u64::max)
    }

    /// Takes everything, if it lies apart: what has to be given up before a run of `count`, and the rest, which ends
    /// where everything ends. The rest begins with the run, or with the last range if no range holds it.
    pub(super) fn give_up_before_run(&mut self, count: u64) -> Option<(Vec<PositionRange>, PositionRange)> {
        let behind = self.later.take()?;
        let front =
            PositionRange::new(self.from, self.to).map(|lease| Run { range: lease, is_bridged: false });
        self.from = self.to;
        let mut runs: Vec<Run> = front.into_iter().chain(behind.runs).collect();
        // Only what reaches to the end without anything of another's in between can be granted again.
        let joined = runs.iter().rposition(|run| !run.is_bridged).unwrap_or(0);
        let last = runs.len().checked_sub(1)?;
        let at = (joined..last).find(|at| runs[*at].range.count() >= count).unwrap_or(last);
        let rest = PositionRange::new(runs[at].range.from(), runs[last].range.to())?;
        runs.truncate(at);
        Some((runs.into_iter().map(|run| run.range).collect(), rest))
    }

    fn later_runs(&mut self) -> &mut LaterRuns {
        self.later.get_or_insert_with(|| Box::new(LaterRuns { runs: VecDeque::new(), count: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn lease(from: u64, to: u64) -> PositionRange {
        PositionRange::new(from, to).unwrap()
    }

    #[test]
    fn what_was_set_aside_does_not_break_what_is_given_back() {
        let mut held = HeldPositions::default();
        held.hold(lease(1, 10), [1, 4, 5]);
        assert_eq!(held.count(), 6);
        // The next lease begins with adopted positions; the one after does not adjoin.
        held.hold(lease(10, 20), [10, 11, 15]);
        held.hold(lease(30, 33), [30]);
        let taken: Vec<u64> = held.take(TakeRequest::Any(3)).unwrap().positions().collect();
        assert_eq!(taken, [2, 3, 6]);
        assert_eq!(held.take_all(), [lease(7, 20), lease(31, 33)]);
    }

    /// Grants ascend, with or without a hole before them, and with adopted positions.
    #[derive(Clone, Debug)]
    enum Step {
        Grant {
            hole: u64,
            count: u64,
            adopted: Vec<u64>,
        },
        Take(u64),
        /// Taken, not seen, and put back.
        TakeUnseen(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u64..3, 1_u64..20, prop::collection::btree_set(0_u64..19, 0..8)).prop_map(
                |(hole, count, adopted)| {
                    let adopted = adopted.into_iter().filter(|at| at + 1 < count).collect();
                    Step::Grant { hole, count, adopted }
                }
            ),
            (0_u64..25).prop_map(Step::Take),
            (1_u64..25).prop_map(Step::TakeUnseen),
        ]
    }

    proptest! {
        #[test]
        fn what_is_held_is_a_queue_of_positions(steps in prop::collection::vec(step(), 1..60)) {
            let (mut held, mut model, mut cursor) = (HeldPositions::default(), VecDeque::new(), 1);
            let mut all_adopted = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Grant { hole, count, adopted } => {
                        let from = cursor + hole;
                        let adopted: Vec<u64> = adopted.into_iter().map(|at| from + at).collect();
                        held.hold(PositionRange::new(from, from + count).unwrap(), adopted.iter().copied());
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
                    Step::TakeUnseen(count) => {
                        let unseen = held.take(TakeRequest::Any(count)).map(|taken| taken.ranges().collect::<Vec<_>>());
                        unseen.into_iter().flatten().rev().for_each(|lease| held.hold_again(lease));
                    }
                }
                prop_assert_eq!(held.count(), model.len() as u64);
                prop_assert_eq!(held.first(), model.front().copied());
                prop_assert_eq!(held.is_empty(), model.is_empty());
            }
            let all = held.take_all();
            prop_assert!(all.windows(2).all(|pair| pair[0].to() <= pair[1].from()));
            let all = all.into_iter().flat_map(|lease| lease.from()..lease.to());
            let (adopted, all): (Vec<u64>, Vec<u64>) = all.partition(|at| all_adopted.contains(at));
            prop_assert_eq!(all, Vec::from(model));
            prop_assert!(adopted.iter().all(|at| all_adopted.contains(at)));
            prop_assert!(held.is_empty() && held.count() == 0);
        }
    }

    #[test]
    fn a_run_is_given_up_for_nothing_only_if_no_range_holds_it() {
        let held = |count| {
            let mut held = HeldPositions::default();
            held.hold(lease(1, 10), []);
            held.hold(lease(20, 60), [25, 45, 50]);
            (held.give_up_before_run(count), held.is_empty())
        };
        let short = vec![lease(1, 10), lease(20, 25)];
        assert_eq!(held(8), (Some((short.clone(), lease(26, 60))), true));
        let all = vec![lease(1, 10), lease(20, 25), lease(26, 45), lease(46, 50)];
        assert_eq!(held(30), (Some((all, lease(51, 60))), true));
        assert_eq!(held(19), (Some((short, lease(26, 60))), true));
        let mut held = HeldPositions::default();
        held.hold(lease(1, 10), []);
        assert_eq!((held.give_up_before_run(30), held.count()), (None, 9), "it lies in one piece");
    }

    proptest! {
        #[test]
        fn a_run_is_one_range_of_what_is_held_and_leaves_all_else(
            grants in prop::collection::vec((0_u64..3, 1_u64..20, prop::collection::btree_set(0_u64..19, 0..6)), 1..8),
            takes in prop::collection::vec((1_u64..25, any::<bool>()), 1..20),
        ) {
            let (mut held, mut model, mut cursor) = (HeldPositions::default(), BTreeSet::new(), 1);
            let mut all_adopted = BTreeSet::new();
            for (hole, count, adopted) in grants {
                let from = cursor + hole;
                let adopted: Vec<u64> = adopted.into_iter().filter(|at| at + 1 < count).map(|at| from + at).collect();
                held.hold(lease(from, from + count), adopted.iter().copied());
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
            let all = held.take_all().into_iter().flat_map(|lease| lease.from()..lease.to());
            let all: BTreeSet<u64> = all.filter(|at| !all_adopted.contains(at)).collect();
            prop_assert_eq!(all, model, "nothing that was taken is given back");
        }
    }
}
