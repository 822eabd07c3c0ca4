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
    }
}
