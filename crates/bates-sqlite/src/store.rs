//! The store itself: a folder, a writer and a reader, behind the port of the core.

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bates_core::{
    Cursor, Definition, Grant, GrantError, Lease, Mark, Pinned, Place, Promise, Redescription, ScopeKey,
    SeriesName, Store, StoreError, Surrendered, Tail, Want,
};
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction};

use crate::aside;
use crate::error::{OpenError, of_read};
use crate::folder::{Folder, Opening};
use crate::held;
use crate::outbox::{Steady, deliver};
use crate::planted::{Bug, is_planted};
use crate::write::Refusable;
use crate::writer::{Awaited, Write};
use crate::{moving, pin, read, schema, write, writer};

/// Only an operator with `sqlite3` can be in the way; that is waited for, not failed on.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Statements are prepared once; there are about a dozen.
const STATEMENTS_MAX: usize = 64;

/// Pages of 4 KiB in the log before they are written into the database. Cursors are moved all over it, so a longer
/// log means that a page is written back once for many moves. It costs 40 MiB of disk, which are read after a crash.
const LOG_PAGES_MAX: u32 = 10_000;

/// Memory for pages of each connection, in KiB: those of a million cursors. Without it each grant would read its
/// page from the file again. What is not used is not taken.
const CACHE_KIB_MAX: i32 = 64 * 1024;

/// Cursors in a folder of this machine.
pub struct SqliteStore {
    /// `None` once the store is being dropped, which is how the writer learns of it.
    writes: Option<Sender<Box<dyn Write>>>,
    writer: Option<JoinHandle<()>>,
    /// `None` once the store is being dropped.
    reader: Mutex<Option<Connection>>,
    pub(crate) steady: Steady,
    /// Which opening of the store this is.
    pub(crate) run: i64,
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

    /// Opens the store that a move fills. Where there is none, one is made that has the mark from the beginning: it is
    /// never served before everything has arrived.
    pub fn open_arriving(path: &Path, mark: &Mark) -> Result<Self, OpenError> {
        Self::open_marked(path, Opening::First, Some(mark))
    }

    fn open_marked(path: &Path, opening: Opening, mark: Option<&Mark>) -> Result<Self, OpenError> {
        let folder = Folder::open(path, opening)?;
        let mut connection = connect(&folder)?;
        // An empty database where cursors should be would begin again at the first number.
        if schema::migrate(&mut connection, mark)? && folder.was_store {
            return Err(folder.gone());
        }
        let steady = Steady::new();
        deliver::release(&connection, steady.now())?;
        let run = held::begin(&connection)?;
        let reader = connect(&folder)?;
        folder.mark_open()?;
        folder.sync()?;
        let (writes, waiting) = mpsc::channel();
        let writer = thread::Builder::new()
            .name("bates-writer".to_owned())
            .spawn(move || writer::run(connection, &waiting))
            .map_err(|error| OpenError::Io { doing: "start the writer of", path: path.to_owned(), error })?;
        let reader = Mutex::new(Some(reader));
        Ok(Self { writes: Some(writes), writer: Some(writer), reader, steady, run, folder })
    }

    pub(crate) async fn write<T, E>(
        &self,
        work: impl Fn(&Transaction<'_>) -> Refusable<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let gone = || StoreError::Poisoned("the writer is gone".into());
        let (awaited, answer) = Awaited::new(work);
        let writes = self.writes.as_ref().ok_or_else(gone)?;
        writes.send(Box::new(awaited)).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone().into()))
    }

    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let reader = self.reader.lock();
        let reader = reader.as_ref().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))?;
        work(reader).map_err(|error| of_read(&error))
    }
}

/// What was sent is still written; then the database is closed and the lock given up.
impl Drop for SqliteStore {
    fn drop(&mut self) {
        drop(self.writes.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has said so already.
            let _ = writer.join();
        }
        // The last connection to close writes the log into the database and removes it.
        drop(self.reader.lock().take());
        self.folder.mark_closed();
    }
}

/// Invariant: `synchronous=FULL` in WAL mode syncs every commit; with `NORMAL` a power cut would take commits
/// back, and their numbers would come again.
fn connect(folder: &Folder) -> Result<Connection, OpenError> {
    let connection = Connection::open(folder.database())?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = if is_planted(Bug::SkipSync) { "OFF" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_MAX)?;
    // SQLite takes a negative size for KiB.
    connection.pragma_update(None, "cache_size", -CACHE_KIB_MAX)?;
    // A plan does not depend on what is bound: otherwise statements would be parsed anew with each binding, because of
    // the partial indexes, and that costs more than they do.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

impl Store for SqliteStore {
    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> Result<Pinned, StoreError> {
        self.write(move |transaction| pin::pin(transaction, &definition, fresh_key.as_deref())).await
    }

    async fn grant(&self, want: Want) -> Result<Grant, GrantError> {
        let run = self.run;
        self.write(move |transaction| write::grant(transaction, &want, run)).await
    }

    async fn surrender(&self, tail: Tail) -> Result<Surrendered, StoreError> {
        let run = self.run;
        self.write(move |transaction| write::surrender(transaction, &tail, run)).await
    }

    async fn cursor(&self, place: Place) -> Result<Option<Cursor>, StoreError> {
        self.read(|connection| read::cursor(connection, &place))
    }

    async fn raise_floor(&self, place: Place, floor: u64) -> Result<Cursor, StoreError> {
        let run = self.run;
        self.write(move |transaction| write::raise_floor(transaction, &place, floor, run)).await
    }

    async fn set_aside(&self, place: Place, positions: Vec<u64>) -> Result<u64, StoreError> {
        self.write(move |transaction| aside::set(transaction, &place, &positions)).await
    }

    async fn aside(&self, place: Place, from: u64, limit: usize) -> Result<Vec<u64>, StoreError> {
        self.read(|connection| aside::read(connection, &place, from, limit))
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Cursor)>, StoreError> {
        self.read(|connection| read::scopes(connection, &series, after.as_ref(), limit))
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.write(write::probe).await
    }

    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> Result<bool, StoreError> {
        self.write(move |transaction| {
            write::describe(transaction, &series, before.as_deref(), description.as_deref())
        })
        .await
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        from: Promise,
        to: Promise,
        described: Option<Redescription>,
    ) -> Result<bool, StoreError> {
        self.write(move |transaction| {
            pin::change_promise(transaction, &series, (from, to), described.as_ref())
        })
        .await
    }

    async fn promises(&self) -> Result<Vec<(SeriesName, Promise)>, StoreError> {
        self.read(pin::promises)
    }

    async fn descriptions(&self) -> Result<Vec<(SeriesName, Box<str>)>, StoreError> {
        self.read(read::descriptions)
    }

    async fn ledger(&self, place: Place) -> Result<Vec<Lease>, StoreError> {
        self.read(|connection| read::ledger(connection, &place))
    }
}
