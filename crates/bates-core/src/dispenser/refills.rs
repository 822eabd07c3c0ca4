//! Refills under way, counted: who closes has to know when the last of them has let go of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// How many there are, and word of each that ends.
#[derive(Default)]
pub(super) struct Refills {
    count: AtomicUsize,
    ended: Notify,
}

/// Counts a refill as long as it lives, also if its task is dropped.
pub(super) struct Counted(Arc<Refills>);

impl Refills {
    pub(super) fn begin(self: &Arc<Self>) -> Counted {
        self.count.fetch_add(1, Ordering::AcqRel);
        Counted(self.clone())
    }

    pub(super) fn are_under_way(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// A refill brought what it was sent for; it may go on with the next.
    pub(super) fn arrived(&self) {
        self.ended.notify_waiters();
    }

    /// Told when one arrives or ends that is under way now.
    pub(super) fn ended(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Waits until there is none. Whoever calls it has seen to it that no new one comes.
    pub(super) async fn all_ended(&self) {
        loop {
            let ended = self.ended();
            if !self.are_under_way() {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_waiters();
    }
}
