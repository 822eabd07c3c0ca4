//! Hunts: random trials of claims that other tests check once. Among the other tests each lasts two seconds;
//! `cargo xtask hunt` sets `BATES_HUNT_SECONDS` and `BATES_HUNT_SEED`. Each prints what it checked.

mod answers;
mod calls;
mod redis;
mod runtimes;

use std::time::{Duration, Instant};

/// A running hunt: its end, and the state of its random numbers.
pub(super) struct Hunt {
    until: Instant,
    state: u64,
}

impl Hunt {
    pub(super) fn begin() -> Self {
        let number = |name: &str, default: u64| {
            std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
        };
        let seconds = number("BATES_HUNT_SECONDS", 2);
        Self { until: Instant::now() + Duration::from_secs(seconds), state: number("BATES_HUNT_SEED", 1) }
    }

    pub(super) fn is_running(&self) -> bool {
        Instant::now() < self.until
    }

    /// A random number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    /// A hunt with the same end and its own random numbers, for another thread.
    pub(super) fn branch(&mut self) -> Self {
        Self { until: self.until, state: self.below(u64::MAX) }
    }
}
