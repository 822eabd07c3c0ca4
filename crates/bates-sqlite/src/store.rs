//! The store itself: a folder, a writer and a reader, behind the port of the core.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use bates_core::ledger::{Outcome, Request};
use bates_core::{MoveMark, NodeStore, ProcessGuard, ScopeId, StoreError, StoreResult};
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction};
use uuid::Uuid;

use crate::batch::{Calls, Job};
use crate::error::{Damage, OpenError, WriteResult, read_error};
use crate::folder::{self, Folder, OpenMode, io_error};
use crate::new_scopes::AnyNewScope;
use crate::open::{self, Opened};
use crate::outbox::SteadyClock;
use crate::state_file::StateFile;
use crate::writer::{CursorUse, PendingWrite, Writer};
use crate::{moving, progress};

pub struct SqliteStore {
    /// `None` while the store is being dropped, which stops the writer.
    jobs: Option<Sender<Job>>,
    writer: Option<JoinHandle<Option<Writer>>>,
    reader: Mutex<Option<Connection>>,
    is_any_new_scope: AnyNewScope,
    state: Arc<StateFile>,
    pub(crate) clock: SteadyClock,
    /// This opening of the store: its row in the table `run`. Held positions name it.
    pub(crate) run: i64,
    pub(crate) identity: Uuid,
    is_new: bool,
    process: ProcessGuard,
    // Invariant: the last field, so that the lock is released after the database is closed.
    folder: Folder,
}

impl SqliteStore {
    pub fn open(path: &Path, mode: OpenMode) -> Result<Self, OpenError> {
        Self::open_with_mark(path, mode, None)
    }

    /// As [`Self::open`], with a file outside the folder that keeps the last commit whose answers were sent: a folder that
    /// is put back from a copy is refused.
    pub fn open_with_mark(path: &Path, mode: OpenMode, mark_file: Option<&Path>) -> Result<Self, OpenError> {
        let store = Self::open_marked(path, mode, None, mark_file)?;
        let unreadable = |error: StoreError| OpenError::Unreadable(error.to_string().into());
        match store.read(moving::read_mark).map_err(unreadable)? {
            None => Ok(store),
            Some(MoveMark::Left(left)) => Err(OpenError::Left(left.other)),
            Some(MoveMark::Arriving(arriving)) => Err(OpenError::Arriving(arriving.other)),
        }
    }

    /// Whether a folder holds a store, or a file that looks like one.
    pub fn is_in(path: &Path) -> bool {
        folder::has_database(path)
    }

    /// Whether this opening created the store.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Also opens a store that a move has left or is filling.
    pub fn open_to_move(path: &Path, mode: OpenMode) -> Result<Self, OpenError> {
        Self::open_marked(path, mode, None, None)
    }

    /// Opens the store that a move fills. A new store is created with the mark, so it is never served too early.
    pub fn open_arriving(path: &Path, mark: &MoveMark) -> Result<Self, OpenError> {
        Self::open_marked(path, OpenMode::First, Some(mark), None)
    }

    fn open_marked(
        path: &Path,
        mode: OpenMode,
        mark: Option<&MoveMark>,
        mark_file: Option<&Path>,
    ) -> Result<Self, OpenError> {
        let Opened { folder, writer, reader, identity, is_new } = open::open(path, mode, mark, mark_file)?;
        let (state, clock, run) = (writer.state.clone(), writer.clock, writer.run);
        let is_any_new_scope = writer.new_scopes.is_any();
        let (jobs, waiting) = mpsc::channel();
        let writer = thread::Builder::new()
            .name("bates-writer".to_owned())
            .spawn(move || writer.serve(&waiting))
            .map_err(io_error("start the writer of", path))?;
        let reader = Mutex::new(Some(reader));
        let process = ProcessGuard::current();
        let (jobs, writer) = (Some(jobs), Some(writer));
        let store = Self {
            jobs,
            writer,
            reader,
            is_any_new_scope,
            state,
            clock,
            run,
            identity,
            is_new,
            process,
            folder,
        };
        Ok(store)
    }

    /// Lets a store that was opened with [`OpenMode::Stopped`] issue again, and returns whether commits were missing. Raise
    /// the cursors first: otherwise the numbers of missing commits are issued again.
    pub fn accept_loss(&self) -> StoreResult<bool> {
        if !self.state.is_stopped() {
            return Ok(false);
        }
        let commits = self.read(progress::read)?.commits;
        let unwritten = |error| StoreError::Unavailable(format!("cannot write bates.state: {error}").into());
        self.state.accept(commits).map(|()| true).map_err(unwritten)
    }

    /// Whether the store lacks commits that no operator has accepted as lost.
    pub fn lacks_commits(&self) -> bool {
        self.state.is_stopped()
    }

    /// Whether users of the folder's group can read the store, and so predict numbers of shuffled series.
    pub fn is_group_readable(&self) -> bool {
        self.folder.is_group_readable()
    }

    /// Fails if the store lacks commits, and no operator has accepted the loss.
    pub(crate) fn check_complete(&self) -> StoreResult<()> {
        if self.state.is_stopped() {
            return Err(StoreError::Poisoned(Damage::NotAccepted.to_string().into()));
        }
        Ok(())
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&Transaction<'_>) -> WriteResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.send_write(work, CursorUse::Any).await
    }

    /// For frequent writes: must not read or change rows of `cursor`, which may lack new scopes.
    pub(crate) async fn write_beside_cursors<T: Send + 'static>(
        &self,
        work: impl Fn(&Transaction<'_>) -> WriteResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.send_write(work, CursorUse::None).await
    }

    pub(crate) async fn send_write<T: Send + 'static>(
        &self,
        work: impl Fn(&Transaction<'_>) -> WriteResult<T> + Send + 'static,
        cursor_use: CursorUse,
    ) -> StoreResult<T> {
        let (pending, answer) = PendingWrite::new(work, cursor_use);
        self.send(Job::Write(Box::new(pending)))?;
        answer.await.unwrap_or_else(|_| Err(writer_stopped()))
    }

    pub(crate) async fn submit(&self, scope_id: ScopeId, request: Request) -> StoreResult<Outcome> {
        let mut outcomes = self.submit_all(vec![(scope_id, request)]).await?;
        Ok(outcomes.pop().expect("each request has an outcome"))
    }

    /// The outcomes of requests in their order, usually of one commit.
    pub(crate) async fn submit_all(&self, requests: Vec<(ScopeId, Request)>) -> StoreResult<Vec<Outcome>> {
        let (calls, answer) = Calls::new(requests, self.clock.now());
        self.send(Job::Calls(calls))?;
        answer.await.map_err(|_| writer_stopped())
    }

    fn send(&self, job: Job) -> StoreResult<()> {
        if self.process.is_forked() {
            return Err(StoreError::Forked);
        }
        self.jobs.as_ref().ok_or_else(writer_stopped)?.send(job).map_err(|_| writer_stopped())
    }

    /// On return, `cursor` has every scope that existed before.
    pub(crate) async fn merge_new_scopes(&self) -> StoreResult<()> {
        if self.is_any_new_scope.load() { self.write(|_| Ok(())).await } else { Ok(()) }
    }

    /// If rows of `cursor` are read, call [`Self::merge_new_scopes`] first.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> StoreResult<T> {
        if self.process.is_forked() {
            return Err(StoreError::Forked);
        }
        let reader = self.reader.lock();
        let reader = reader.as_ref().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))?;
        work(reader).map_err(|error| read_error(&error))
    }
}

fn writer_stopped() -> StoreError {
    StoreError::Poisoned("the writer has stopped: open the store again".into())
}

/// Waiting writes are finished, then the database is closed and the lock released.
impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.process.is_forked() {
            // The parent has the database open, and closing it here would write to it.
            std::mem::forget((self.jobs.take(), self.writer.take(), self.reader.get_mut().take()));
            return;
        }
        drop(self.jobs.take());
        // If the writer failed or panicked, the files stay as after a crash.
        let writer = self.writer.take().and_then(|writer| writer.join().ok().flatten());
        drop(self.reader.lock().take());
        if let Some(writer) = writer {
            writer.close(&self.folder);
        }
    }
}

impl NodeStore for SqliteStore {}
