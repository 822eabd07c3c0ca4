//! What an embedded machine does besides answering: idle scopes leave memory, what is over is voided or removed, and
//! documents are delivered. Looking for gaps is left to the program.

use std::sync::Arc;
use std::time::Duration;

use bates_core::{Machine, ProcessGuard, Relay, RelaySettings, SeriesName, Sink};
use bates_sqlite::SqliteStore;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::Settings;

/// How late a reservation is voided at the most. A look that finds nothing writes nothing.
const TIDY_PERIOD: Duration = Duration::from_secs(1);

/// How long `close` waits for a sink that is being delivered to. A document of which the sink then said nothing is in
/// doubt, and delivered again.
const STOP_LASTS: Duration = Duration::from_secs(1);

/// Old records are looked for once in so many times.
const PRUNE_EVERY: u64 = 60;

/// Tasks that run until they are stopped, or dropped.
pub(super) struct Chores {
    stopping: watch::Sender<bool>,
    relays: JoinSet<()>,
    others: JoinSet<()>,
    process: ProcessGuard,
}

/// In a fork the tasks are not there, and what they share with their runtime may be locked for ever.
impl Drop for Chores {
    fn drop(&mut self) {
        if self.process.is_forked() {
            std::mem::forget((std::mem::take(&mut self.relays), std::mem::take(&mut self.others)));
        }
    }
}

impl Chores {
    pub(super) fn start(
        machine: &Arc<Machine<SqliteStore>>,
        sinks: Vec<(SeriesName, Box<dyn Sink>)>,
        settings: &Settings,
    ) -> Self {
        let (stopping, stopped) = watch::channel(false);
        let (mut relays, mut others) = (JoinSet::new(), JoinSet::new());
        // Begun here and not in their tasks: a runtime without timers is told to whoever opens the folder.
        others.spawn(evict(machine.clone(), ticks(settings.idle.max(Duration::from_millis(1)))));
        others.spawn(tidy(machine.clone(), ticks(TIDY_PERIOD), settings.retention));
        let how = RelaySettings {
            tries_max: settings.tries_max,
            stop_lasts: STOP_LASTS,
            ..RelaySettings::default()
        };
        for (name, sink) in sinks {
            let entry = machine.named(name.as_str()).expect("a series that was just opened is there");
            relays.spawn(Relay::new(machine.clone(), entry, sink, how).run(stopped.clone()));
        }
        Self { stopping, relays, others, process: ProcessGuard::current() }
    }

    /// Ends what is under way. Afterwards no task has the machine any more.
    pub(super) async fn stop(mut self) {
        if self.process.is_forked() {
            return;
        }
        // Those that have ended already need not hear of it.
        let _ = self.stopping.send(true);
        while self.relays.join_next().await.is_some() {}
        self.others.shutdown().await;
    }
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn evict(machine: Arc<Machine<SqliteStore>>, mut ticks: Interval) {
    loop {
        ticks.tick().await;
        machine.evict_idle().await;
    }
}

async fn tidy(machine: Arc<Machine<SqliteStore>>, mut ticks: Interval, retention: Duration) {
    for tick in 0_u64.. {
        ticks.tick().await;
        // A store that fails is told of by whoever asks it for numbers.
        let _ = machine.tidy(retention).await;
        if tick % PRUNE_EVERY == 0 {
            let _ = machine.prune_records().await;
        }
    }
}
