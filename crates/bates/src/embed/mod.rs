//! The numbering machine embedded: a folder, its series, and what has to be done for them meanwhile.
//!
//! Owns how the core and the embedded store are put together for a program. Must never decide what a number is.

mod account;
mod chores;
mod document;
mod error;
mod number;
mod numbering;
mod prefetch;
mod series;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Closed, Machine, Runtime, SystemRuntime};
use bates_sqlite::{Opening, SqliteStore};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use chores::Chores;

pub use error::Error;
pub use number::Number;
pub use numbering::Numbering;
pub use prefetch::{Leases, Prefetched};
pub use series::Series;

/// How long delivered documents and confirmed reservations can be looked at.
const RETENTION: Duration = Duration::from_hours(7 * 24);

/// Scopes that nobody asked for in this time leave memory.
const IDLE: Duration = Duration::from_mins(5);

/// A numbering machine in a folder.
///
/// Dropped without [`Bates::close`], it is what a crash is: what was held in memory is skipped, nothing is repeated, and
/// the folder is free once the runtime has dropped what runs in the background.
pub struct Bates {
    // Invariant: first, so that nothing runs any more when the machine goes.
    chores: Chores,
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
            retention: RETENTION,
            idle: IDLE,
            tries_max: bates_core::RelaySettings::default().tries_max,
            clock: Arc::new(SystemRuntime),
        }
    }
}

impl Bates {
    /// Opens the folder, which is made if it is not there, and the series in it. Those that were there before go on.
    ///
    /// What decides the text of a series is pinned when it is first opened: another pattern, start, order or reset under
    /// the same name is refused from then on. A folder that another process has open is refused, too.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime, or in one whose timers are not enabled.
    pub async fn open(
        folder: impl Into<PathBuf>,
        series: impl IntoIterator<Item = Series>,
    ) -> Result<Self, Error> {
        Self::open_with(folder, series, Settings::default()).await
    }

    /// The same with settings.
    ///
    /// # Panics
    ///
    /// As [`Bates::open`] does.
    pub async fn open_with(
        folder: impl Into<PathBuf>,
        series: impl IntoIterator<Item = Series>,
        settings: Settings,
    ) -> Result<Self, Error> {
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
        let chores = Chores::start(&machine, sinks, &settings);
        Ok(Self { chores, machine, runtime: Handle::current() })
    }

    /// A series by its name.
    pub fn series(&self, name: &str) -> Result<Numbering, Error> {
        let entry = self.machine.named(name).ok_or_else(|| Error::UnknownSeries(name.into()))?;
        Ok(Numbering::new(self.machine.clone(), self.runtime.clone(), entry))
    }

    /// The machine itself, for what is not offered here.
    pub fn machine(&self) -> &Arc<Machine<SqliteStore>> {
        &self.machine
    }

    /// Refuses new calls, lets those under way end, and gives unused numbers back.
    ///
    /// The folder can be opened again when the last [`Numbering`] is dropped.
    pub async fn close(self) -> Closed {
        self.chores.stop().await;
        let closed = self.machine.close().await;
        // The last one to go waits for the disk, but in a fork, where there is nothing to write.
        let machine = self.machine;
        if !machine.is_forked() {
            let _ = self.runtime.spawn_blocking(move || drop(machine)).await;
        }
        closed
    }
}
