//! The writer: one thread that takes all writes that wait, commits them together, and answers after the commit.
//!
//! Invariant: an answer is sent only once its commit is on disk. After a write whose outcome is unknown, every write fails.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use bates_core::{StoreError, StoreResult};
use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::batch::{Batch, Job};
use crate::checkpoint::{self, CheckpointError, Threshold};
use crate::error::{OpenError, of_write};
use crate::folder::{Folder, failed};
use crate::outbox::Steady;
use crate::planted::{self, Bug};
use crate::progress;
use crate::state_file::{Phase, StateFile};
use crate::write::{self, Refusable};

/// Max writes in one commit. A sync costs as much as some hundred rows: more would delay the first for little.
const BATCH_MAX: usize = 4_096;

pub(crate) trait Write: Send {
    fn apply(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()>;

    fn answer(self: Box<Self>, committed: StoreResult<()>);
}

pub(crate) struct Awaited<T, W> {
    work: W,
    outcome: Option<StoreResult<T>>,
    answer: oneshot::Sender<StoreResult<T>>,
}

impl<T, W: Fn(&Transaction<'_>) -> Refusable<T>> Awaited<T, W> {
    pub(crate) fn new(work: W) -> (Self, oneshot::Receiver<StoreResult<T>>) {
        let (answer, receiver) = oneshot::channel();
        (Self { work, outcome: None, answer }, receiver)
    }
}

impl<T: Send, W: Fn(&Transaction<'_>) -> Refusable<T> + Send> Write for Awaited<T, W> {
    fn apply(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        self.outcome = Some((self.work)(transaction)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: StoreResult<()>) {
        let Self { outcome, answer, .. } = *self;
        let outcome = committed.and_then(|()| outcome.expect("what was committed was applied before"));
        // The range of a caller that no longer waits becomes a gap.
        let _ = answer.send(outcome);
    }
}

pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) state: Arc<StateFile>,
    pub(crate) steady: Steady,
    pub(crate) run: i64,
    pub(crate) commits: u64,
}

impl Writer {
    /// Writes until the store is dropped. Answers `None` if a write failed and it is unknown what is on disk.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) -> Option<Self> {
        if planted::is_planted(Bug::AnswerBeforeCommit) {
            planted::run_answering_early(&mut self.connection, self.run, jobs);
            return Some(self);
        }
        let mut batch = Batch::default();
        let mut threshold = Threshold::new();
        while let Ok(first) = jobs.recv() {
            batch.push(first);
            jobs.try_iter().take(BATCH_MAX - 1).for_each(|job| batch.push(job));
            let mut outcome = self.commit_making_room(&mut batch);
            batch.answer(&outcome);
            if outcome.is_ok() {
                // After the answers are sent, so that no caller waits for it.
                outcome = known(threshold.check(&self.connection, &self.state));
            }
            if let Err(error @ StoreError::Poisoned(_)) = outcome {
                for job in jobs {
                    batch.push(job);
                    batch.answer(&Err(error.clone()));
                }
                return None;
            }
        }
        Some(self)
    }

    /// Closes the database. Each step leaves a store that opens: checkpoint, then state file, then the log goes.
    pub(crate) fn close(mut self, folder: &Folder) {
        // The next opening does what fails here, as after a crash.
        let (mut closing, (probe, _)) = (Batch::default(), Awaited::new(write::probe));
        closing.push(Job::Write(Box::new(probe)));
        if self.commit_making_room(&mut closing).is_ok()
            && matches!(checkpoint::empty(&self.connection, &self.state), Ok(true))
            && self.mark_closed(folder).is_ok()
        {
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }

    fn mark_closed(&self, folder: &Folder) -> Result<(), OpenError> {
        let path = folder.state_file();
        self.state.enter(Phase::Closed).map_err(failed("write", &path))?;
        if !self.state.is_in_place() {
            StateFile::create(&path, self.state.content()).map_err(failed("make", &path))?;
            folder.sync()?;
        }
        Ok(())
    }

    /// On a full disk the log is written into the database, which makes room, and the batch is tried once more.
    fn commit_making_room(&mut self, batch: &mut Batch) -> StoreResult<()> {
        let committed = match self.commit(batch) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                known(checkpoint::empty(&self.connection, &self.state))?;
                self.commit(batch)
            }
            committed => committed,
        };
        if !committed.map_err(|error| of_write(&error))? {
            return Ok(());
        }
        self.commits += 1;
        // Invariant: before any answer. A start that finds fewer commits than this refuses.
        self.state.answered(self.commits).map_err(|error| {
            let what = "the state file (bates.state) could not be written";
            StoreError::Poisoned(format!("{what}: {error}; the store must be opened again").into())
        })
    }

    /// Answers whether there was anything to write. Dropping the transaction on the way out of an error rolls it back.
    fn commit(&mut self, batch: &mut Batch) -> rusqlite::Result<bool> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let before = transaction.total_changes();
        batch.apply(&transaction, self.run)?;
        let is_changed = transaction.total_changes() != before;
        if is_changed {
            progress::raise(&transaction, self.commits + 1, self.steady.now())?;
        }
        transaction.commit()?;
        Ok(is_changed)
    }
}

/// A busy reader or a full disk changes nothing. After any other failure it is unknown what is on disk.
fn known<T>(outcome: Result<T, CheckpointError>) -> StoreResult<()> {
    match outcome {
        Err(error) if error.is_of_disk() => Err(StoreError::Poisoned(error.to_string().into())),
        _ => Ok(()),
    }
}
