//! The numbering machine embedded: puts core and embedded store together. Must never decide what a number is.

mod document;
mod error;
mod numbering;
mod prefetch;
mod series;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{
    AuditFilter, AuditRecord, Gap, GapFilter, IdentifierMatch, Machine, ProcessGuard, ReconcileReport, Relay,
    RelaySettings, Runtime, ScopeId, SystemRuntime,
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

/// How long `close` waits for a delivery. After it, the document is in doubt and delivered again.
const STOP_LASTS: Duration = Duration::from_secs(1);

/// A numbering machine in a folder.
///
/// Dropped without [`Bates::close`], numbers held in memory are skipped, as after a crash; none is repeated.
pub struct Bates {
    // Invariant: first, so that no task runs any more when the machine is dropped.
    tasks: Mutex<Option<Background>>,
    /// `None` once it was closed.
    machine: RwLock<Option<Arc<Machine<SqliteStore>>>>,
    runtime: Handle,
    process: ProcessGuard,
}

/// Settings besides the series.
#[derive(Clone)]
pub struct Settings {
    /// Whether a store is made in a folder that holds none.
    pub open_mode: OpenMode,
    /// How long delivered documents and confirmed reservations are kept: a week.
    pub retention: Duration,
    /// A scope that was not used for this time leaves memory and gives back what it held: five minutes.
    pub idle: Duration,
    /// How many failed deliveries make a document dead: five.
    pub attempts_max: u32,
    /// The source of today's date.
    pub clock: Arc<dyn Runtime>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            open_mode: OpenMode::First,
            retention: Duration::from_hours(7 * 24),
            idle: Duration::from_mins(5),
            attempts_max: RelaySettings::default().attempts_max,
            clock: Arc::new(SystemRuntime),
        }
    }
}

impl Bates {
    /// Opens the folder, which is made if it does not exist, and the series in it. Existing series continue.
    ///
    /// Pattern, start, order and reset of a series are pinned when it is first opened: others are refused from then on.
    /// A folder that another process has open is refused, too.
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
        let (folder, opening) = (folder.into(), settings.open_mode);
        let store = spawn_blocking(move || SqliteStore::open(&folder, opening)).await;
        let store = store.expect("nothing panics while a folder is opened")?;
        let machine = Arc::new(Machine::open(Arc::new(store), specs, settings.clock.clone()).await?);
        let Settings { attempts_max: tries_max, idle, retention, .. } = settings;
        let mut tasks = Background::start(&machine, idle, retention);
        let settings =
            RelaySettings { attempts_max: tries_max, stop_timeout: STOP_LASTS, ..RelaySettings::default() };
        for (name, sink) in sinks {
            let entry = machine.series(name.as_str()).expect("a series that was just opened is there");
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

    /// Everything that a text could be, by the name of the series.
    pub async fn find(&self, text: &str) -> Result<Vec<IdentifierMatch>> {
        Ok(self.open_machine()?.find(text).await?)
    }

    /// Compares the cursors with what was issued, numbered and held, and writes down what is missing.
    pub async fn reconcile(&self) -> Result<ReconcileReport> {
        Ok(self.open_machine()?.reconcile(None).await?)
    }

    /// The gaps of the last reconciliation by place and position, after `after`, at most `limit`.
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

    /// The machine itself, for what is not offered here.
    pub fn machine(&self) -> Result<Arc<Machine<SqliteStore>>> {
        self.open_machine()
    }

    /// Refuses new calls, waits for those under way, gives unused numbers back, and returns how many became gaps. The
    /// folder can be opened again when the last [`Numbering`] is dropped. A second call does nothing.
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
