//! What a machine does besides answering, embedded or served: idle scopes leave memory, what is over is voided or
//! removed, and what a front end adds. Must never keep the machine alive once it was stopped.

use std::sync::Arc;
use std::time::Duration;

use bates_core::{Machine, ProcessGuard, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How late a reservation is voided at the most. A look that finds nothing writes nothing.
const TIDY_PERIOD: Duration = Duration::from_secs(1);

/// Old records are looked for once in so many times: each series is asked for its own.
const PRUNE_EVERY: u64 = 60;

/// Tasks that run until they are stopped, or dropped.
#[derive(Default)]
pub(crate) struct Background {
    stopping: watch::Sender<bool>,
    /// Those that end what is under way when they hear of the stop.
    pub(crate) finishing: JoinSet<()>,
    /// Those that may be cut off anywhere.
    pub(crate) endless: JoinSet<()>,
    process: ProcessGuard,
}

/// In a fork the tasks are not there, and what they share with their runtime may be locked for ever.
impl Drop for Background {
    fn drop(&mut self) {
        if self.process.is_forked() {
            std::mem::forget((std::mem::take(&mut self.finishing), std::mem::take(&mut self.endless)));
        }
    }
}

impl Background {
    /// Scopes that nobody asked for in `idle` leave memory; what was delivered is removed after `retention`.
    pub(crate) fn start<S: Store>(machine: &Arc<Machine<S>>, idle: Duration, retention: Duration) -> Self {
        let mut tasks = Self::default();
        // Begun here and not in their tasks: a runtime without timers is told to whoever opens the store.
        tasks.endless.spawn(evict(machine.clone(), ticks(idle.max(Duration::from_millis(1)))));
        tasks.endless.spawn(tidy(machine.clone(), ticks(TIDY_PERIOD), retention));
        tasks
    }

    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Ends what is under way. Afterwards no task has the machine any more.
    pub(crate) async fn stop(mut self) {
        if self.process.is_forked() {
            return;
        }
        self.stopping.send_replace(true);
        while self.finishing.join_next().await.is_some() {}
        self.endless.shutdown().await;
    }
}

/// A tick each period; one that is missed is not made up for.
pub(crate) fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn evict<S: Store>(machine: Arc<Machine<S>>, mut ticks: Interval) {
    loop {
        ticks.tick().await;
        machine.evict_idle().await;
    }
}

async fn tidy<S: Store>(machine: Arc<Machine<S>>, mut ticks: Interval, retention: Duration) {
    for tick in 0_u64.. {
        ticks.tick().await;
        // A store that fails is told of by readiness, or by whoever asks it for numbers, and asked again.
        let _ = machine.tidy(retention).await;
        if tick % PRUNE_EVERY == 0 {
            let _ = machine.prune_records().await;
        }
    }
}
