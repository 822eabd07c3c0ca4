//! Waits that differ by chance, so that nodes which failed together do not try again together.

use std::ops::Range;
use std::time::Duration;

/// A wait times a random factor; the middle of the range if the system has no randomness.
pub fn jittered(wait: Duration, factors: Range<f64>) -> Duration {
    let share = getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX));
    wait.mul_f64(factors.start + share * (factors.end - factors.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_lies_within_its_range_and_varies() {
        let waits: Vec<_> =
            (0..64).map(|_| jittered(Duration::from_secs(4), 0.75..1.25).as_secs_f64()).collect();
        assert!(waits.iter().all(|wait| (3.0..=5.0).contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| wait.total_cmp(&waits[0]).is_ne()), "{waits:?}");
    }
}
