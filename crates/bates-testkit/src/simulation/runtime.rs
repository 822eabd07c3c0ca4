//! The runtime of a simulation: virtual time of a paused single-threaded Tokio runtime, and random numbers from a
//! seed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bates_core::Runtime;
use jiff::Timestamp;
use tokio::time::Instant;
use uuid::{Builder, Uuid};

/// Time and randomness from a seed. Tasks and sleeps are those of the surrounding Tokio runtime.
#[derive(Debug)]
pub struct SimulatedRuntime {
    started: Instant,
    state: AtomicU64,
    ids: AtomicU64,
}

impl SimulatedRuntime {
    /// Starts at the same moment for every seed.
    pub fn new(seed: u64) -> Self {
        Self { started: Instant::now(), state: AtomicU64::new(seed), ids: AtomicU64::new(0) }
    }

    /// A random number below a bound.
    pub fn below(&self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// The generator of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
    fn next(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.state.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Runtime for SimulatedRuntime {
    fn now(&self) -> Timestamp {
        let start = Timestamp::constant(1_800_000_000, 0);
        start.checked_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Runs at once: a second thread would finish at an unpredictable time.
    fn compute(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), Box<str>> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }

    fn new_id(&self) -> Uuid {
        let mut tail = [0; 10];
        tail[2..].copy_from_slice(&self.ids.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        let millis = u64::try_from(self.now().as_millisecond()).unwrap_or(0);
        Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
    }
}
