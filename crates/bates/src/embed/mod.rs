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
    Closed, Found, Gap, GapFilter, Machine, Place, Reconciled, Record, RecordFilter, Relay, RelaySettings,
    Runtime, SystemRuntime,
};
use bates_sqlite::{Opening, SqliteStore};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::background::Background;
use error::Result;

pub use error::Error;
pub use numbering::{Number, Numbering};
pub use prefetch::{Leases, Prefetched};
pub use series::Series;

/// How long `close` waits for a delivery. After it, the document is in doubt and delivered again.
const STOP_LASTS: Duration = Duration::from_secs(1);

/// A numbering machine in a folder.
///
/// Dropped without [`Bates::close`], numbers held in memory are skipped, as after a crash; none is repeated.
pub struct Bates {
    // Invariant: first, so that nothing runs any more when the machine goes.
    tasks: Background,
    machine: Arc<Machine<SqliteStore>>,
    runtime: Handle,
}

/// What can be said besides the series.
#[derive(Clone)]
pub struct Settings {
    /// What may be done with a folder that holds no store.
    pub opening: Opening,
    /// How long delivered documents and confirmed reservations can be looked at: a week.
    pub retention: Duration,
    /// Scopes that nobody asked for in this time leave memory, and what they held is given back: five minutes.
    pub idle: Duration,
    /// A document whose delivery failed so often is dead: five times.
    pub tries_max: u32,
    /// Where today's date comes from.
    pub clock: Arc<dyn Runtime>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            opening: Opening::First,
            retention: Duration::from_hours(7 * 24),
            idle: Duration::from_mins(5),
            tries_max: RelaySettings::default().tries_max,
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
        let (folder, opening) = (folder.into(), settings.opening);
        let store = spawn_blocking(move || SqliteStore::open(&folder, opening)).await;
        let store = store.expect("nothing panics while a folder is opened")?;
        let machine = Arc::new(Machine::open(Arc::new(store), specs, settings.clock.clone()).await?);
        let Settings { tries_max, idle, retention, .. } = settings;
        let mut tasks = Background::start(&machine, idle, retention);
        let settings = RelaySettings { tries_max, stop_lasts: STOP_LASTS, ..RelaySettings::default() };
        for (name, sink) in sinks {
            let entry = machine.named(name.as_str()).expect("a series that was just opened is there");
            let stopped = tasks.stopped();
            tasks.finishing.spawn(Relay::new(machine.clone(), entry, sink, settings).run(stopped));
        }
        Ok(Self { tasks, machine, runtime: Handle::current() })
    }

    /// A series by its name.
    pub fn series(&self, name: &str) -> Result<Numbering> {
        let entry = self.machine.named(name).ok_or_else(|| Error::UnknownSeries(name.into()))?;
        Ok(Numbering::new(self.machine.clone(), self.runtime.clone(), entry))
    }

    /// Everything that a text could be, by the name of the series.
    pub async fn find(&self, text: &str) -> Result<Vec<Found>> {
        Ok(self.machine.find(text).await?)
    }

    /// Compares the cursors with what was issued, numbered and held, and writes down what is missing.
    pub async fn reconcile(&self) -> Result<Reconciled> {
        Ok(self.machine.reconcile(None).await?)
    }

    /// The gaps of the last reconciliation by place and position, after `after`, at most `limit`.
    pub async fn gaps(&self, of: GapFilter, after: Option<(Place, u64)>, limit: usize) -> Result<Vec<Gap>> {
        Ok(self.machine.gaps(of, after, limit).await?)
    }

    /// Who took which numbers of audited series, by time, after `after`, at most `limit`.
    pub async fn records(
        &self,
        of: RecordFilter,
        after: Option<&Record>,
        limit: usize,
    ) -> Result<Vec<Record>> {
        let after = after.map(|record| (record.taking.at, record.id));
        Ok(self.machine.records(of, after, limit).await?)
    }

    /// The machine itself, for what is not offered here.
    pub fn machine(&self) -> &Arc<Machine<SqliteStore>> {
        &self.machine
    }

    /// Refuses new calls, lets those under way end, and gives unused numbers back. The folder can be opened again when
    /// the last [`Numbering`] is dropped.
    pub async fn close(self) -> Closed {
        self.tasks.stop().await;
        let closed = self.machine.close().await;
        // Dropping the last handle waits for the disk; in a fork there is nothing to write.
        let machine = self.machine;
        if !machine.is_forked() {
            let _ = self.runtime.spawn_blocking(move || drop(machine)).await;
        }
        closed
    }
}
