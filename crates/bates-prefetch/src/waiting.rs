//! Calls that wait for numbers.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tokio::sync::watch;

use crate::error::Empty;
use crate::prefetched::Shared;
use crate::source::Source;

impl<S: Source> Shared<S> {
    /// Waits until a refill has ended. Invariant: a call that waits when the process is forked fails in the forked
    /// process, and goes on in the first one only.
    pub(crate) async fn woken(
        &self,
        ended: &mut watch::Receiver<Option<Arc<S::Error>>>,
    ) -> Result<(), Empty<S::Error>> {
        let mut changed = pin!(ended.changed());
        let look = |context: &mut Context<'_>| match changed.as_mut().poll(context) {
            _ if self.is_forked() => Poll::Ready(Err(Empty::Forked)),
            changed => changed.map(|_| Ok(())),
        };
        poll_fn(look).await
    }
}

/// Who waits, and for how many.
pub(crate) struct Waiting<'p, S: Source> {
    shared: &'p Shared<S>,
    count: u64,
}

impl<'p, S: Source> Waiting<'p, S> {
    pub(crate) fn new(shared: &'p Shared<S>, count: u64) -> Self {
        shared.waited_for.fetch_add(count, Ordering::Relaxed);
        Self { shared, count }
    }
}

impl<S: Source> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        self.shared.waited_for.fetch_sub(self.count, Ordering::Relaxed);
    }
}
