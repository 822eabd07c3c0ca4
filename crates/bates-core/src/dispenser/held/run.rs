//! Runs: positions that follow each other. Must never join what something else lies between.

use super::{Held, Run};
use crate::range::{Lease, Taken};

impl Held {
    /// Takes a run from the first range behind the one in use that holds all of it.
    pub(super) fn take_behind(&mut self, count: u64) -> Option<Taken> {
        let behind = self.behind.as_mut().filter(|_| count > 0)?;
        let at = behind.runs.iter().position(|run| run.lease.count() >= count)?;
        let (first, rest) = behind.runs[at].lease.split(count);
        // The taken run lies between its neighbours now, so they are no longer bridged.
        match rest {
            Some(lease) => behind.runs[at] = Run { lease, is_bridged: false },
            None => drop(behind.runs.remove(at)),
        }
        if let (None, Some(next)) = (rest, behind.runs.get_mut(at)) {
            next.is_bridged = false;
        }
        behind.count -= count;
        self.behind.take_if(|behind| behind.runs.is_empty());
        first.map(Taken::from)
    }

    pub(in super::super) fn longest_run(&self) -> u64 {
        let behind = self.behind.iter().flat_map(|behind| &behind.runs).map(|run| run.lease.count());
        behind.fold(self.to - self.from, u64::max)
    }

    /// Takes everything if it lies apart: what must be given up before a run of `count`, and the rest up to the end.
    /// The rest begins with the run, or with the last range if no range holds it.
    pub(in super::super) fn give_up_before_run(&mut self, count: u64) -> Option<(Vec<Lease>, Lease)> {
        let behind = self.behind.take()?;
        let front = Lease::new(self.from, self.to).map(|lease| Run { lease, is_bridged: false });
        self.from = self.to;
        let mut runs: Vec<Run> = front.into_iter().chain(behind.runs).collect();
        // Only ranges up to the end, with nothing granted to others in between, can be granted again.
        let joined = runs.iter().rposition(|run| !run.is_bridged).unwrap_or(0);
        let last = runs.len().checked_sub(1)?;
        let at = (joined..last).find(|at| runs[*at].lease.count() >= count).unwrap_or(last);
        let rest = Lease::new(runs[at].lease.from(), runs[last].lease.to())?;
        runs.truncate(at);
        Some((runs.into_iter().map(|run| run.lease).collect(), rest))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::dispenser::Wanted;

    fn lease(from: u64, to: u64) -> Lease {
        Lease::new(from, to).unwrap()
    }

    #[test]
    fn a_run_is_given_up_for_nothing_only_if_no_range_holds_it() {
        let held = |count| {
            let mut held = Held::default();
            held.hold(lease(1, 10), &[]);
            held.hold(lease(20, 60), &[25, 45, 50]);
            (held.give_up_before_run(count), held.is_empty())
        };
        let short = vec![lease(1, 10), lease(20, 25)];
        assert_eq!(held(8), (Some((short.clone(), lease(26, 60))), true));
        let all = vec![lease(1, 10), lease(20, 25), lease(26, 45), lease(46, 50)];
        assert_eq!(held(30), (Some((all, lease(51, 60))), true));
        assert_eq!(held(19), (Some((short, lease(26, 60))), true));
        let mut held = Held::default();
        held.hold(lease(1, 10), &[]);
        assert_eq!((held.give_up_before_run(30), held.count()), (None, 9), "it lies in one piece");
    }

    proptest! {
        #[test]
        fn a_run_is_one_range_of_what_is_held_and_leaves_all_else(
            grants in prop::collection::vec((0_u64..3, 1_u64..20, prop::collection::btree_set(0_u64..19, 0..6)), 1..8),
            takes in prop::collection::vec((1_u64..25, any::<bool>()), 1..20),
        ) {
            let (mut held, mut model, mut cursor) = (Held::default(), BTreeSet::new(), 1);
            let mut all_aside = BTreeSet::new();
            for (hole, count, aside) in grants {
                let from = cursor + hole;
                let aside: Vec<u64> = aside.into_iter().filter(|at| at + 1 < count).map(|at| from + at).collect();
                held.hold(lease(from, from + count), &aside);
                model.extend((from..from + count).filter(|at| !aside.contains(at)));
                all_aside.extend(aside);
                cursor = from + count;
            }
            for (count, is_anywhere) in takes {
                let fits = |from: &u64| (*from..from + count).all(|at| model.contains(&at));
                let first = if is_anywhere { model.iter().copied().find(fits) } else { model.first().copied().filter(fits) };
                let taken = held.take_anywhere(Wanted::Run(count), is_anywhere);
                let taken: Option<Vec<u64>> = taken.map(|taken| taken.positions().collect());
                prop_assert_eq!(&taken, &first.map(|from| (from..from + count).collect::<Vec<u64>>()));
                model.retain(|at| !taken.iter().flatten().any(|taken| taken == at));
                prop_assert_eq!((held.count(), held.first()), (model.len() as u64, model.first().copied()));
            }
            let all = held.take_all().into_iter().flat_map(|lease| lease.from()..lease.to());
            let all: BTreeSet<u64> = all.filter(|at| !all_aside.contains(at)).collect();
            prop_assert_eq!(all, model, "nothing that was taken is given back");
        }
    }
}
