//! Which process opened something. A forked process has a copy of everything in memory, numbers and locks included, and
//! must use none of it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

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

    /// Waits for a call; `None` in a fork, which is not told of what the first process waits for.
    pub(crate) async fn unless_forked<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        let mut call = pin!(call);
        poll_fn(|context| {
            if self.is_forked() {
                return Poll::Ready(None);
            }
            call.as_mut().poll(context).map(Some)
        })
        .await
    }
}
