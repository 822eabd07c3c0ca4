//! Positions that were set aside: somebody else gave their numbers out, so a grant passes over them.

use crate::lease::Lease;

/// The first run of positions from `next` on that is free: at most `count`, below `end`, and none that was set aside,
/// of which `aside` tells one after the other, ascending. `None` if nothing is free.
pub fn free_run<E>(
    mut next: u64,
    count: u64,
    end: u64,
    mut aside: impl FnMut() -> Result<Option<u64>, E>,
) -> Result<Option<Lease>, E> {
    loop {
        match aside()? {
            Some(position) if position < next => {}
            Some(position) if position == next => next += 1,
            other => {
                let to = next.saturating_add(count).min(end).min(other.unwrap_or(u64::MAX));
                return Ok(Lease::new(next, to));
            }
        }
    }
}

/// No more of them lie between the positions of one lease: each is held in memory.
const BETWEEN_MAX: usize = 16_384;

/// Positions from `next` on, and which of them were set aside: at most `count` that are free, below `end`. The last one
/// is free. `None` if nothing is.
pub fn free_span<E>(
    next: u64,
    count: u64,
    end: u64,
    mut aside: impl FnMut() -> Result<Option<u64>, E>,
) -> Result<Option<(Lease, Vec<u64>)>, E> {
    let (mut at, mut to, mut free, mut between) = (next, next, 0, Vec::new());
    loop {
        let ahead = match aside()? {
            Some(position) if position < at => continue,
            ahead => ahead.unwrap_or(end).min(end),
        };
        let run = ahead.saturating_sub(at).min(count - free);
        if run > 0 {
            (free, to) = (free + run, at + run);
        }
        if free == count || ahead >= end || free > 0 && between.len() >= BETWEEN_MAX {
            between.retain(|position| *position < to);
            return Ok(Lease::new(next, to).filter(|_| free > 0).map(|lease| (lease, between)));
        }
        between.push(ahead);
        at = ahead + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_all_that_is_free_each_once(aside in prop::collection::btree_set(0_u64..40, 0..30), count in 1_u64..9) {
            let (mut next, mut seen) = (3, Vec::new());
            loop {
                let mut told = aside.iter().copied();
                let run = free_run(next, count, 40, || Ok::<_, Infallible>(told.next()));
                let Ok(Some(run)) = run else { break };
                prop_assert!(run.count() <= count);
                seen.extend(run.from()..run.to());
                next = run.to();
            }
            let free: Vec<u64> = (3..40).collect::<BTreeSet<_>>().difference(&aside).copied().collect();
            prop_assert_eq!(seen, free);
        }

        #[test]
        fn spans_are_all_that_is_free_each_once_and_as_many_as_were_asked_for(
            aside in prop::collection::btree_set(0_u64..40, 0..30),
            count in 1_u64..9,
        ) {
            let (mut next, mut seen, mut last) = (3, Vec::new(), count);
            loop {
                let mut told = aside.iter().copied();
                let span = free_span(next, count, 40, || Ok::<_, Infallible>(told.next()));
                let Ok(Some((lease, between))) = span else { break };
                prop_assert_eq!(lease.from(), next);
                prop_assert_eq!(last, count, "only the last one is shorter");
                prop_assert!(between.iter().all(|position| aside.contains(position)));
                let free: Vec<u64> = (lease.from()..lease.to()).filter(|at| !between.contains(at)).collect();
                prop_assert_eq!(free.last(), Some(&(lease.to() - 1)));
                last = free.len() as u64;
                prop_assert!(last <= count);
                seen.extend(free);
                next = lease.to();
            }
            let free: Vec<u64> = (3..40).collect::<BTreeSet<_>>().difference(&aside).copied().collect();
            prop_assert_eq!(seen, free);
        }
    }
}
