//! Executes the commands of a transaction. Must never leave its answer without an element for each of them, unless the
//! connection ends.

use std::io;

use bates_core::{ErrorCode, Store};
use tokio::sync::watch;

use super::super::Reply;
use super::super::command::Outcome;
use super::super::transaction::Queue;
use super::{ANSWER_BYTES_MAX, Connection, Stream};

/// Commands that are answered from memory before other connections are served in between.
const AT_ONCE_MAX: usize = 256;

impl<S: Store> Connection<S> {
    /// Executes the commands in order, as if they arrived now.
    pub(super) async fn execute_queue(
        &mut self,
        Queue { bytes, count }: Queue,
        stream: &mut Stream,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<()> {
        Reply::new(&mut self.output, self.session.protocol).array(count);
        self.suspended = std::mem::replace(&mut self.input, bytes);
        let executed = self.execute_all(count, stream, stop).await;
        self.input = std::mem::take(&mut self.suspended);
        executed
    }

    async fn execute_all(
        &mut self,
        count: usize,
        stream: &mut Stream,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<()> {
        let (mut at, mut prefetched_to) = (0, 0);
        for executed in 0..count {
            if let Some((code, sentence)) = self.refusal(stop) {
                let mut reply = Reply::new(&mut self.output, self.session.protocol);
                (executed..count).for_each(|_| reply.code(code, sentence));
                return Ok(());
            }
            let begun_at = at;
            if let Some(Outcome::Deferred(request)) = self.step(&mut at) {
                if at < self.input.len() && begun_at >= prefetched_to {
                    prefetched_to = self.prefetch(begun_at);
                }
                self.answer(request).await?;
            } else if executed % AT_ONCE_MAX == AT_ONCE_MAX - 1 {
                tokio::task::yield_now().await;
            }
            if self.output.len() >= ANSWER_BYTES_MAX {
                self.write(stream).await?;
            }
        }
        Ok(())
    }

    /// Why the rest of the transaction is not executed.
    fn refusal(&self, stop: &watch::Receiver<bool>) -> Option<(ErrorCode, &'static str)> {
        if self.session.has_invalid_caller() {
            let sentence = "the secret of this connection was revoked, replaced or has expired";
            return Some((ErrorCode::UNAUTHORIZED, sentence));
        }
        let stops = stop.has_changed().unwrap_or(true);
        stops.then_some((ErrorCode::STOPPING, "the server is stopping; this command was not executed"))
    }
}
