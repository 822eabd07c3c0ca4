//! The writer: one thread that commits all waiting writes together, and answers after the commit.
//!
//! Invariant: an answer is sent only once its commit is on disk. After a write whose outcome is unknown, every write fails.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use bates_core::{StoreError, StoreResult};
use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::batch::{Batch, Job};
use crate::checkpoint::{self, CheckpointError, Threshold};
use crate::error::{OpenError, WriteError, WriteResult, write_error};
use crate::folder::{Folder, io_error};
use crate::new_scopes::NewScopes;
use crate::outbox::SteadyClock;
use crate::planted::{self, Bug};
use crate::progress;
use crate::state_file::{Phase, StateFile};
use crate::write;

/// A commit takes no further jobs once it has this many writes. A sync costs as much as a few hundred rows, so more would
/// mostly delay the first caller.
const BATCH_MAX: usize = 4_096;

/// A writer without a job for this long is idle, and does what can wait. Between two batches of a busy one it is shorter.
const IDLE_AFTER: Duration = Duration::from_millis(5);

/// What a write may do with rows of `cursor`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorUse {
    None,
    /// It may read or change any row, so `cursor` has every scope.
    Any,
    /// As well, it may add scopes that the ledger does not decide.
    Adds,
}

/// A write that the ledger does not decide.
pub(crate) trait Write: Send {
    fn apply(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()>;

    fn cursor_use(&self) -> CursorUse;

    fn answer(self: Box<Self>, committed: StoreResult<()>);
}

pub(crate) struct PendingWrite<T, W> {
    work: W,
    cursor_use: CursorUse,
    outcome: Option<StoreResult<T>>,
    answer: oneshot::Sender<StoreResult<T>>,
}

impl<T, W: Fn(&Transaction<'_>) -> WriteResult<T>> PendingWrite<T, W> {
    pub(crate) fn new(work: W, cursor_use: CursorUse) -> (Self, oneshot::Receiver<StoreResult<T>>) {
        let (answer, receiver) = oneshot::channel();
        (Self { work, cursor_use, outcome: None, answer }, receiver)
    }
}

impl<T: Send, W: Fn(&Transaction<'_>) -> WriteResult<T> + Send> Write for PendingWrite<T, W> {
    fn apply(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        self.outcome = Some(match (self.work)(transaction) {
            Ok(done) => Ok(done),
            Err(WriteError::Refused(error)) => Err(error),
            Err(WriteError::Sqlite(error)) => return Err(error),
        });
        Ok(())
    }

    fn cursor_use(&self) -> CursorUse {
        self.cursor_use
    }

    fn answer(self: Box<Self>, committed: StoreResult<()>) {
        let Self { outcome, answer, .. } = *self;
        let outcome = committed.and_then(|()| outcome.expect("a committed write was applied"));
        // The range of a caller that no longer waits becomes a gap.
        let _ = answer.send(outcome);
    }
}

/// What ends the wait of the writer.
enum Waited {
    Job(Job),
    /// No job came, and there are scopes to merge.
    Idle,
    /// The store was dropped.
    Dropped,
}

pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) state: Arc<StateFile>,
    pub(crate) clock: SteadyClock,
    pub(crate) run: i64,
    /// How many commits the store has, with those of earlier runs.
    pub(crate) commits: u64,
    pub(crate) new_scopes: NewScopes,
}

impl Writer {
    /// Runs until the store is dropped. Returns `None` if a write failed and the content of the disk is unknown.
    pub(crate) fn serve(mut self, jobs: &Receiver<Job>) -> Option<Self> {
        if planted::is_planted(Bug::AnswerBeforeCommit) {
            planted::run_answering_early(&mut self.connection, self.run, &mut self.new_scopes, jobs);
            return Some(self);
        }
        let mut batch = Batch::default();
        let mut threshold = Threshold::new();
        let mut may_idle = true;
        loop {
            match self.wait(jobs, may_idle) {
                Waited::Job(first) => batch.push(first),
                Waited::Idle => {}
                Waited::Dropped => return Some(self),
            }
            while batch.len() < BATCH_MAX
                && let Ok(job) = jobs.try_recv()
            {
                batch.push(job);
            }
            let mut outcome = self.commit_making_room(&mut batch);
            batch.answer(&outcome);
            // On a full disk, the idle writer would try without end.
            may_idle = outcome.is_ok();
            if outcome.is_ok() {
                // After the answers are sent, so that no caller waits for the checkpoint.
                outcome = poison_on_disk_failure(threshold.check(&self.connection, &self.state));
            }
            if let Err(error @ StoreError::Poisoned(_)) = outcome {
                for job in jobs {
                    batch.push(job);
                    batch.answer(&Err(error.clone()));
                }
                return None;
            }
        }
    }

    /// Waits for the next job. Meanwhile reads which scopes exist.
    fn wait(&mut self, jobs: &Receiver<Job>, may_idle: bool) -> Waited {
        loop {
            let is_work_left = self.new_scopes.has_many() || self.new_scopes.is_reading_known();
            if !may_idle || !is_work_left {
                return jobs.recv().map_or(Waited::Dropped, Waited::Job);
            }
            match jobs.recv_timeout(IDLE_AFTER) {
                Ok(job) => return Waited::Job(job),
                Err(RecvTimeoutError::Disconnected) => return Waited::Dropped,
                Err(RecvTimeoutError::Timeout) if self.new_scopes.has_many() => return Waited::Idle,
                // What cannot be read now is read later, or never: then every new scope is looked for.
                Err(RecvTimeoutError::Timeout) => drop(self.new_scopes.read_known(&self.connection)),
            }
        }
    }

    /// A clean stop: checkpoint, then state file, then SQLite removes the log. The store can be opened after each step.
    pub(crate) fn close(mut self, folder: &Folder) {
        // If a step fails, the next opening does it, as after a crash. The probe is the last commit, and updates `seen_at`.
        let (mut closing, (probe, _)) = (Batch::default(), PendingWrite::new(write::probe, CursorUse::Any));
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
        self.state.enter(Phase::Closed).map_err(io_error("write", &path))?;
        if !self.state.is_in_place() {
            StateFile::create(&path, self.state.content()).map_err(io_error("create", &path))?;
            folder.sync()?;
        }
        Ok(())
    }

    /// If the disk is full, runs a checkpoint, which makes room, and tries the batch once more.
    fn commit_making_room(&mut self, batch: &mut Batch) -> StoreResult<()> {
        let committed = match self.commit(batch) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                poison_on_disk_failure(checkpoint::empty(&self.connection, &self.state))?;
                self.commit(batch)
            }
            committed => committed,
        };
        if !committed.map_err(|error| write_error(&error))? {
            return Ok(());
        }
        self.commits += 1;
        // Invariant: written before any answer is sent. A store with fewer commits than this is refused when it is opened.
        self.state.record_commit(self.commits).map_err(|error| {
            StoreError::Poisoned(format!("cannot write bates.state: {error}; open the store again").into())
        })
    }

    /// Returns whether the batch changed anything. On an error, dropping the transaction rolls it back.
    fn commit(&mut self, batch: &mut Batch) -> rusqlite::Result<bool> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let before = transaction.total_changes();
        let change = batch.apply(&transaction, self.run, &mut self.new_scopes)?;
        let is_changed = transaction.total_changes() != before;
        if is_changed {
            progress::raise(&transaction, self.commits + 1, self.clock.now())?;
        }
        transaction.commit()?;
        self.new_scopes.committed(change);
        Ok(is_changed)
    }
}

/// A busy reader or a full disk leaves the database unchanged. After any other failure, the content of the disk is unknown.
fn poison_on_disk_failure<T>(outcome: Result<T, CheckpointError>) -> StoreResult<()> {
    match outcome {
        Err(error) if error.is_disk_failure() => Err(StoreError::Poisoned(error.to_string().into())),
        _ => Ok(()),
    }
}
