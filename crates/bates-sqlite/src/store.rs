//! The store itself: a folder, a writer and a reader, behind the port of the core.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use bates_core::ledger::{Outcome, Request};
use bates_core::{
    Cursor, CursorStore, Definition, Grant, GrantError, Lease, Mark, NodeStore, Pinned, Place, Position,
    ProcessGuard, Promise, PromiseChange, Reason, Redescription, ScopeKey, SeriesName, SeriesStore,
    StoreError, StoreResult, Surrendered, Tail, Want,
};
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction};
use uuid::Uuid;

use crate::aside;
use crate::batch::{Call, Job};
use crate::error::{Damage, OpenError, of_read};
use crate::folder::{Folder, Opening, failed};
use crate::held;
use crate::open::{self, Opened};
use crate::outbox::Steady;
use crate::progress;
use crate::state_file::StateFile;
use crate::write::Refusable;
use crate::writer::{Awaited, Writer};
use crate::{moving, pin, read, write};

/// Cursors in a folder of this machine.
pub struct SqliteStore {
    /// `None` once the store is being dropped, which is how the writer learns of it.
    writes: Option<Sender<Job>>,
    writer: Option<JoinHandle<Option<Writer>>>,
    /// `None` once the store is being dropped.
    reader: Mutex<Option<Connection>>,
    state: Arc<StateFile>,
    pub(crate) steady: Steady,
    pub(crate) run: i64,
    identity: Uuid,
    process: ProcessGuard,
    // Invariant: last, so that the lock is given up after the database is closed.
    folder: Folder,
}

impl SqliteStore {
    /// Opens the store in a folder, and makes it if the folder may become one.
    pub fn open(path: &Path, opening: Opening) -> Result<Self, OpenError> {
        let store = Self::open_to_move(path, opening)?;
        match store.read(moving::marked).map_err(|error| OpenError::Unreadable(error.to_string().into()))? {
            None => Ok(store),
            Some(Mark::Left(left)) => Err(OpenError::Left(left.other)),
            Some(Mark::Arriving(arriving)) => Err(OpenError::Arriving(arriving.other)),
        }
    }

    /// The same for a store that is moved, whether or not it may be served.
    pub fn open_to_move(path: &Path, opening: Opening) -> Result<Self, OpenError> {
        Self::open_marked(path, opening, None)
    }

    /// Opens the store that a move fills. A missing store is made with the mark from the beginning: it is
    /// never served before everything has arrived.
    pub fn open_arriving(path: &Path, mark: &Mark) -> Result<Self, OpenError> {
        Self::open_marked(path, Opening::First, Some(mark))
    }

    fn open_marked(path: &Path, opening: Opening, mark: Option<&Mark>) -> Result<Self, OpenError> {
        let Opened { folder, writer, reader, identity } = open::open(path, opening, mark)?;
        let (state, steady, run) = (writer.state.clone(), writer.steady, writer.run);
        let (writes, waiting) = mpsc::channel();
        let writer = thread::Builder::new()
            .name("bates-writer".to_owned())
            .spawn(move || writer.run(&waiting))
            .map_err(failed("start the writer of", path))?;
        let reader = Mutex::new(Some(reader));
        let process = ProcessGuard::current();
        let (writes, writer) = (Some(writes), Some(writer));
        Ok(Self { writes, writer, reader, state, steady, run, identity, process, folder })
    }

    /// Lets a store that was opened with [`Opening::Stopped`] issue again, with the commits that it has. Numbers that
    /// were issued by commits that are missing come again, unless the cursors were raised above them before.
    ///
    /// Answers whether any were missing.
    pub fn accept_loss(&self) -> StoreResult<bool> {
        if !self.state.is_stopped() {
            return Ok(false);
        }
        let commits = self.read(progress::read)?.commits;
        let accepted = self.state.accept(commits);
        let failed = |error| StoreError::Unavailable(format!("cannot write bates.state: {error}").into());
        accepted.map(|()| true).map_err(failed)
    }

    pub(crate) fn check_complete(&self) -> StoreResult<()> {
        if self.state.is_stopped() {
            return Err(StoreError::Poisoned(Damage::NotAccepted.to_string().into()));
        }
        Ok(())
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&Transaction<'_>) -> Refusable<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (awaited, answer) = Awaited::new(work);
        self.send(Job::Write(Box::new(awaited)))?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Has the ledger decide a request, together with those that wait just now.
    pub(crate) async fn ask(&self, place: Place, request: Request) -> StoreResult<Outcome> {
        let (call, answer) = Call::new(place, request, self.steady.now());
        self.send(Job::Call(Box::new(call)))?;
        answer.await.map_err(|_| gone())
    }

    fn send(&self, job: Job) -> StoreResult<()> {
        if self.process.is_forked() {
            return Err(StoreError::Forked);
        }
        self.writes.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())
    }

    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> StoreResult<T> {
        if self.process.is_forked() {
            return Err(StoreError::Forked);
        }
        let reader = self.reader.lock();
        let reader = reader.as_ref().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))?;
        work(reader).map_err(|error| of_read(&error))
    }
}

fn gone() -> StoreError {
    StoreError::Poisoned("the writer has stopped: the store must be opened again".into())
}

/// What was sent is still written; then the database is closed and the lock given up.
impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.process.is_forked() {
            // The database is open in the other process. To close it here would write to it.
            std::mem::forget((self.writes.take(), self.writer.take(), self.reader.get_mut().take()));
            return;
        }
        drop(self.writes.take());
        // A writer that panicked has said so already. One that failed leaves everything as a crash does.
        let writer = self.writer.take().and_then(|writer| writer.join().ok().flatten());
        drop(self.reader.lock().take());
        if let Some(writer) = writer {
            writer.close(&self.folder);
        }
    }
}

impl SeriesStore for SqliteStore {
    fn identity(&self) -> Uuid {
        self.identity
    }

    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> StoreResult<Pinned> {
        self.write(move |transaction| pin::pin(transaction, &definition, fresh_key.as_deref())).await
    }

    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> StoreResult<bool> {
        self.write(move |transaction| {
            write::describe(transaction, &series, before.as_deref(), description.as_deref())
        })
        .await
    }

    async fn descriptions(&self) -> StoreResult<Vec<(SeriesName, Box<str>)>> {
        self.read(read::descriptions)
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        change: PromiseChange,
        described: Option<Redescription>,
    ) -> StoreResult<bool> {
        self.write(move |transaction| pin::change_promise(transaction, &series, change, described.as_ref()))
            .await
    }

    async fn promises(&self) -> StoreResult<Vec<(SeriesName, Promise)>> {
        self.read(pin::promises)
    }

    async fn probe(&self) -> StoreResult<()> {
        self.write(write::probe).await
    }
}

impl CursorStore for SqliteStore {
    async fn grant(&self, want: Want) -> Result<Grant, GrantError> {
        self.check_complete()?;
        self.ask(want.place.clone(), Request::Grant(want)).await?.into_grant()
    }

    async fn surrender(&self, tail: Tail) -> StoreResult<Surrendered> {
        self.ask(tail.place.clone(), Request::Release(tail)).await?.into_release()
    }

    async fn cursor(&self, place: Place) -> StoreResult<Option<Cursor>> {
        self.read(|connection| read::cursor(connection, &place))
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Cursor)>> {
        self.read(|connection| read::scopes(connection, &series, after.as_ref(), limit))
    }

    async fn ledger(&self, place: Place) -> StoreResult<Vec<Lease>> {
        self.read(|connection| read::ledger(connection, &place))
    }

    async fn burn(&self, burned: Vec<(Place, Lease)>) -> StoreResult<()> {
        self.write(move |transaction| {
            for (place, range) in &burned {
                let Some(at) = write::at(transaction, place)? else { return Ok(Err(write::unknown(place))) };
                held::lose(transaction, at, *range, Reason::Burned)?;
            }
            Ok(Ok(()))
        })
        .await
    }

    async fn raise_floor(&self, place: Place, floor: u64) -> StoreResult<Cursor> {
        self.ask(place, Request::RaiseFloor(floor)).await?.into_floor()
    }

    async fn set_aside(&self, place: Place, positions: Vec<Position>) -> StoreResult<u64> {
        self.ask(place, Request::Adopt(positions)).await?.into_adopted()
    }

    async fn aside(&self, place: Place, from: u64, limit: usize) -> StoreResult<Vec<Position>> {
        self.read(|connection| aside::read(connection, &place, from, limit))
    }
}

impl NodeStore for SqliteStore {}
