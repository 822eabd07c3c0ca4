//! The writer: one thread that takes all writes that wait, commits them together, and answers after the commit.
//!
//! Invariant: an answer is sent only once its commit is on disk. After a write whose outcome is unknown the
//! writer writes nothing more, and says so to everybody.

use std::sync::mpsc::Receiver;

use bates_core::StoreError;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::error::of_write;
use crate::planted::{self, Bug};
use crate::write::Refusable;

/// Writes that share one commit. A sync costs as much as some hundred rows, so more would make the first of
/// them wait for the last without saving much.
const BATCH_MAX: usize = 4_096;

/// A write: what it does within a transaction, and whom it tells once that is committed.
pub(crate) trait Write: Send {
    fn apply(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()>;

    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

/// A write that somebody waits for.
pub(crate) struct Awaited<T, E, W> {
    work: W,
    outcome: Option<Result<T, E>>,
    answer: oneshot::Sender<Result<T, E>>,
}

impl<T, E, W> Awaited<T, E, W>
where
    W: Fn(&Transaction<'_>) -> Refusable<T, E>,
{
    pub(crate) fn new(work: W) -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (answer, receiver) = oneshot::channel();
        (Self { work, outcome: None, answer }, receiver)
    }
}

impl<T, E, W> Write for Awaited<T, E, W>
where
    T: Send,
    E: From<StoreError> + Send,
    W: Fn(&Transaction<'_>) -> Refusable<T, E> + Send,
{
    fn apply(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        self.outcome = Some((self.work)(transaction)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match committed {
            Ok(()) => self.outcome.expect("what was committed was applied before"),
            Err(error) => Err(error.into()),
        };
        // Who no longer waits loses what it asked for: its range becomes a gap.
        let _ = self.answer.send(answer);
    }
}

/// Writes until the store is dropped.
pub(crate) fn run(mut connection: Connection, writes: &Receiver<Box<dyn Write>>) {
    if planted::is_planted(Bug::AnswerBeforeCommit) {
        return planted::run_answering_early(connection, writes);
    }
    let mut batch: Vec<Box<dyn Write>> = Vec::new();
    while let Ok(first) = writes.recv() {
        batch.push(first);
        batch.extend(writes.try_iter().take(BATCH_MAX - 1));
        let committed = commit_making_room(&mut connection, &mut batch).map_err(|error| of_write(&error));
        for write in batch.drain(..) {
            write.answer(committed.clone());
        }
        if let Err(error @ StoreError::Poisoned(_)) = committed {
            for write in writes {
                write.answer(Err(error.clone()));
            }
            return;
        }
    }
}

/// On a full disk the log may be what fills it. What is in it is then written into the database, which gives its
/// room back, and the batch is tried once more: nothing of it was committed.
fn commit_making_room(connection: &mut Connection, batch: &mut [Box<dyn Write>]) -> rusqlite::Result<()> {
    match commit(connection, batch) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
            // If there is no room for that either, the second try says so.
            let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
            commit(connection, batch)
        }
        committed => committed,
    }
}

/// Dropping the transaction on the way out of an error rolls it back.
fn commit(connection: &mut Connection, batch: &mut [Box<dyn Write>]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    batch.iter_mut().try_for_each(|write| write.apply(&transaction))?;
    transaction.commit()
}
