//! What a scope holds: positions granted and not handed out, ascending. Mostly one range, so two integers; what
//! does not join it lies apart.
//!
//! Invariant: a position leaves once, and never comes back unless nobody saw it.

use std::collections::VecDeque;

use crate::lease::{Lease, Taken};

/// Positions granted and not handed out.
#[derive(Default)]
pub(super) struct Held {
    /// The range in use, empty if `from == to`. Invariant: it is empty only if nothing is held.
    from: u64,
    to: u64,
    /// What comes behind it and does not join it.
    behind: Option<Box<Behind>>,
}

struct Behind {
    /// Never empty.
    leases: VecDeque<Lease>,
}

impl Held {
    #[inline]
    pub(super) fn count(&self) -> u64 {
        let behind = self.behind.as_ref().map_or(0, |behind| behind.leases.iter().map(|l| l.count()).sum());
        self.to - self.from + behind
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The first position that is held.
    pub(super) fn first(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.from)
    }

    /// Takes `count` positions from the front: all of them, or none.
    #[inline]
    pub(super) fn take(&mut self, count: u64) -> Option<Taken> {
        // One is always left in the range, so that it need not be asked what comes behind it.
        if self.to - self.from > count {
            let first = Lease::new(self.from, self.from + count)?;
            self.from += count;
            return Some(Taken { first, rest: Vec::new() });
        }
        self.take_across(count)
    }

    #[cold]
    fn take_across(&mut self, count: u64) -> Option<Taken> {
        if count == 0 || self.count() < count {
            return None;
        }
        let mut taken = Taken { first: self.take_front(count)?, rest: Vec::new() };
        while taken.count() < count {
            taken.rest.push(self.take_front(count - taken.count())?);
        }
        Some(taken)
    }

    /// Takes from the first range only.
    fn take_front(&mut self, count: u64) -> Option<Lease> {
        let (taken, rest) = Lease::new(self.from, self.to)?.split(count);
        match rest {
            Some(rest) => self.from = rest.from(),
            None => self.advance(),
        }
        taken
    }

    /// The range in use is used up: the next one comes to the front.
    fn advance(&mut self) {
        self.from = self.to;
        if let Some(behind) = &mut self.behind {
            if let Some(next) = behind.leases.pop_front() {
                (self.from, self.to) = (next.from(), next.to());
            }
            if behind.leases.is_empty() {
                self.behind = None;
            }
        }
    }

    /// Holds a lease that was granted behind all that is held.
    pub(super) fn hold(&mut self, lease: Lease) {
        let last = self.behind.as_mut().and_then(|behind| behind.leases.back_mut());
        match (Lease::new(self.from, self.to), last) {
            (None, _) => (self.from, self.to) = (lease.from(), lease.to()),
            (Some(front), None) if front.joined(lease).is_some() => self.to = lease.to(),
            (Some(_), Some(last)) if last.joined(lease).is_some() => {
                *last = last.joined(lease).unwrap_or(*last);
            }
            (Some(_), _) => self.apart().push_back(lease),
        }
    }

    /// Puts back what was taken from the front.
    pub(super) fn hold_again(&mut self, lease: Lease) {
        match Lease::new(self.from, self.to) {
            None => (self.from, self.to) = (lease.from(), lease.to()),
            Some(front) if lease.joined(front).is_some() => self.from = lease.from(),
            Some(front) => {
                self.apart().push_front(front);
                (self.from, self.to) = (lease.from(), lease.to());
            }
        }
    }

    /// Everything, ascending.
    pub(super) fn take_all(&mut self) -> Vec<Lease> {
        let mut all: Vec<Lease> = Lease::new(self.from, self.to).into_iter().collect();
        all.extend(self.behind.take().into_iter().flat_map(|behind| behind.leases));
        self.from = self.to;
        all
    }

    fn apart(&mut self) -> &mut VecDeque<Lease> {
        &mut self.behind.get_or_insert_with(|| Box::new(Behind { leases: VecDeque::new() })).leases
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What can happen to what is held. Grants ascend, with or without a hole before them.
    #[derive(Clone, Debug)]
    enum Step {
        Grant {
            hole: u64,
            count: u64,
        },
        Take(u64),
        /// Taken, not seen, and put back.
        TakeUnseen(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u64..3, 1_u64..20).prop_map(|(hole, count)| Step::Grant { hole, count }),
            (0_u64..25).prop_map(Step::Take),
            (1_u64..25).prop_map(Step::TakeUnseen),
        ]
    }

    proptest! {
        #[test]
        fn what_is_held_is_a_queue_of_positions(steps in prop::collection::vec(step(), 1..60)) {
            let (mut held, mut model, mut cursor) = (Held::default(), VecDeque::new(), 1);
            for step in steps {
                match step {
                    Step::Grant { hole, count } => {
                        held.hold(Lease::new(cursor + hole, cursor + hole + count).unwrap());
                        model.extend(cursor + hole..cursor + hole + count);
                        cursor += hole + count;
                    }
                    Step::Take(count) => {
                        let taken = held.take(count).map(|taken| taken.positions().collect::<Vec<_>>());
                        let room = count > 0 && model.len() as u64 >= count;
                        let expected = room.then(|| model.drain(..usize::try_from(count).unwrap()).collect());
                        prop_assert_eq!(taken, expected);
                    }
                    Step::TakeUnseen(count) => {
                        let unseen = held.take(count).map(|taken| taken.leases().collect::<Vec<_>>());
                        unseen.into_iter().flatten().rev().for_each(|lease| held.hold_again(lease));
                    }
                }
                prop_assert_eq!(held.count(), model.len() as u64);
                prop_assert_eq!(held.first(), model.front().copied());
                prop_assert_eq!(held.is_empty(), model.is_empty());
            }
            let all: Vec<u64> = held.take_all().into_iter().flat_map(|lease| lease.from()..lease.to()).collect();
            prop_assert_eq!(all, Vec::from(model));
            prop_assert!(held.is_empty() && held.count() == 0);
        }
    }
}
