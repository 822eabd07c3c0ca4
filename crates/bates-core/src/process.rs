//! Which process opened something. A forked process has a copy of everything in memory, numbers and locks included, and
//! must use none of it.

use forkguard::Guard;

/// Remembers the process in which it was made.
#[derive(Clone, Debug)]
pub struct ProcessGuard(Guard);

impl ProcessGuard {
    /// Remembers this process.
    pub fn current() -> Self {
        Self(forkguard::new())
    }

    /// Whether this process is a fork of the one that it remembers. Costs a load and a comparison.
    ///
    /// A fork must not take a lock before it asks: a thread that only the first process has may hold it.
    #[inline]
    pub fn is_forked(&self) -> bool {
        self.0.clone().detected_fork()
    }
}
