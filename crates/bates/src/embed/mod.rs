//! The embedded numbering machine: core and embedded store in one process. Must never contain a numbering rule.

mod document;
mod error;
mod numbering;
mod prefetch;
mod series;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{
    AuditFilter, AuditRecord, DocumentRetention, Gap, GapFilter, IdentifierMatch, Machine, ProcessGuard,
    ReconcileReport, Relay, RelaySettings, Runtime, ScopeId, SystemRuntime,
};
use bates_prefetch::CloseError;
use bates_sqlite::{OpenMode, SqliteStore};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::background::Background;
use error::Result;

pub use error::Error;
pub use numbering::Numbering;
pub use prefetch::{Leases, Prefetched};
pub use series::Series;

/// How long `close` waits for a delivery. After that, the document is in doubt and is delivered again.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A numbering machine in a folder.
///
/// Dropped without [`Bates::close`], numbers held in memory are skipped, as after a crash; none is repeated.
pub struct Bates {
    // Invariant: the first field, so that the tasks end before the machine is dropped.
    tasks: Mutex<Option<Background>>,
    /// `None` once it is closed.
    machine: RwLock<Option<Arc<Machine<SqliteStore>>>>,
    runtime: Handle,
    process: ProcessGuard,
}

/// Settings besides the series.
#[derive(Clone)]
pub struct Settings {
    /// Whether to create a store in a folder without one.
    pub open_mode: OpenMode,
    /// How long delivered documents and confirmed reservations are kept: a week.
    pub retention: Duration,
    /// How long dead and abandoned documents and voided reservations are kept: 90 days.
    pub undelivered_retention: Duration,
    /// A scope that is unused for this time leaves memory and returns its numbers: five minutes.
    pub idle: Duration,
    /// A document is dead after this many failed deliveries: five.
    pub attempts_max: u32,
    /// The source of today's date.
    pub clock: Arc<dyn Runtime>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            open_mode: OpenMode::First,
            retention: DocumentRetention::default().delivered,
            undelivered_retention: DocumentRetention::default().undelivered,
            idle: Duration::from_mins(5),
            attempts_max: RelaySettings::default().attempts_max,
            clock: Arc::new(SystemRuntime),
        }
    }
}

impl Bates {
    /// Opens the folder, which is created if it is missing, and the series in it. Existing series continue.
    ///
    /// Pattern, start, order and reset of a series are pinned when it is first opened, and cannot change afterwards. A
    /// folder that another process has open is refused.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime, or in one whose timers are not enabled.
    pub async fn open(folder: impl Into<PathBuf>, series: impl IntoIterator<Item = Series>) -> Result<Self> {
        Self::open_with(folder, series, Settings::default()).await
    }

    /// As [`Bates::open`], with settings. Panics as it does.
    pub async fn open_with(
        folder: impl Into<PathBuf>,
        series: impl IntoIterator<Item = Series>,
        settings: Settings,
    ) -> Result<Self> {
        let (mut specs, mut sinks) = (Vec::new(), Vec::new());
        for series in series {
            let (spec, sink) = series.described()?;
            sinks.extend(sink.map(|sink| (spec.name.clone(), sink)));
            specs.push(spec);
        }
        let (folder, mode) = (folder.into(), settings.open_mode);
        let store = spawn_blocking(move || SqliteStore::open(&folder, mode)).await;
        let store = store.expect("opening a folder does not panic")?;
        let machine = Arc::new(Machine::open(Arc::new(store), specs, settings.clock.clone()).await?);
        let Settings { attempts_max, idle, retention: delivered, undelivered_retention: undelivered, .. } =
            settings;
        let retention = DocumentRetention { delivered, undelivered };
        let mut tasks = Background::start(&machine, idle, retention);
        let settings = RelaySettings { attempts_max, stop_timeout: STOP_TIMEOUT, ..RelaySettings::default() };
        for (name, sink) in sinks {
            let entry = machine.series(name.as_str()).expect("the series was just opened");
            let stopped = tasks.stopped();
            tasks.finishing.spawn(Relay::new(machine.clone(), entry, sink, settings).run(stopped));
        }
        let (tasks, machine) = (Mutex::new(Some(tasks)), RwLock::new(Some(machine)));
        Ok(Self { tasks, machine, runtime: Handle::current(), process: ProcessGuard::current() })
    }

    /// A series by its name.
    pub fn series(&self, name: &str) -> Result<Numbering> {
        let machine = self.open_machine()?;
        let entry = machine.series(name).ok_or_else(|| Error::UnknownSeries(name.into()))?;
        Ok(Numbering::new(machine, self.runtime.clone(), entry))
    }

    /// Every series, scope and position that a text matches, ordered by the name of the series.
    pub async fn find(&self, text: &str) -> Result<Vec<IdentifierMatch>> {
        Ok(self.open_machine()?.find(text, true).await?)
    }

    /// Finds gaps: compares the cursors with documents and held numbers, and records every missing position.
    pub async fn reconcile(&self) -> Result<ReconcileReport> {
        Ok(self.open_machine()?.reconcile(None).await?)
    }

    /// The gaps of the last reconciliation by scope and position, after `after`, at most `limit`.
    pub async fn gaps(&self, of: GapFilter, after: Option<(ScopeId, u64)>, limit: usize) -> Result<Vec<Gap>> {
        Ok(self.open_machine()?.gaps(of, after, limit).await?)
    }

    /// Who took which numbers of audited series, by time, after `after`, at most `limit`.
    pub async fn records(
        &self,
        of: AuditFilter,
        after: Option<&AuditRecord>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>> {
        let after = after.map(|record| (record.stamp.at, record.id));
        Ok(self.open_machine()?.records(of, after, limit).await?)
    }

    /// The machine itself, for calls that this type does not have.
    pub fn machine(&self) -> Result<Arc<Machine<SqliteStore>>> {
        self.open_machine()
    }

    /// Refuses new calls, waits for running ones, returns unused numbers to the store, and reports how many became gaps.
    /// The folder can be opened again when the last [`Numbering`] is dropped. A second call does nothing.
    pub async fn close(&self) -> Result<u64, CloseError<Error>> {
        if self.process.is_forked() {
            return Err(CloseError::Forked);
        }
        let (tasks, machine) = (self.tasks.lock().take(), self.machine.write().take());
        let (Some(tasks), Some(machine)) = (tasks, machine) else { return Ok(0) };
        tasks.stop().await;
        let report = machine.close().await;
        // Dropping the last handle waits for the disk.
        let _ = self.runtime.spawn_blocking(move || drop(machine)).await;
        Ok(report.gaps)
    }

    fn open_machine(&self) -> Result<Arc<Machine<SqliteStore>>> {
        self.machine.read().clone().ok_or(Error::Closed)
    }
}
