//! Facts about this process: whether it was forked, and its host. A forked process has a copy of all numbers, locks and
//! connections, and must use none of it. A crate of its own, because the core and the client, which do not know each other,
//! both need it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use forkguard::Guard;

/// Remembers the process in which it was made.
#[derive(Clone, Debug)]
pub struct ProcessGuard(Guard);

impl Default for ProcessGuard {
    fn default() -> Self {
        Self::current()
    }
}

impl ProcessGuard {
    pub fn current() -> Self {
        Self(forkguard::new())
    }

    /// Costs a load and a comparison. Check before taking a lock: a thread that only the parent has may hold it.
    #[inline]
    pub fn is_forked(&self) -> bool {
        self.0.clone().detected_fork()
    }

    /// Waits for a call; `None` in a fork, also if the call was waiting during the fork: the answer belongs to the parent.
    pub async fn unless_forked<T>(&self, call: impl Future<Output = T>) -> Option<T> {
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

/// The name of this machine, for people and for the operations log.
pub fn host_name() -> Box<str> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown".into() } else { name.into() }
}
