//! Background tasks of a machine: evict idle scopes, void expired reservations, remove old documents and records, and
//! tasks that a front end adds. Must never keep the machine alive after a stop.

use std::sync::Arc;
use std::time::Duration;

use bates_core::{DocumentRetention, Machine, ProcessGuard, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// A reservation is voided at most this long after it expires. A run that finds nothing writes nothing.
const TIDY_PERIOD: Duration = Duration::from_secs(1);

/// In ticks of `TIDY_PERIOD`: pruning records takes a query for each series.
const PRUNE_EVERY: u64 = 60;

#[derive(Default)]
pub(crate) struct Background {
    stopping: watch::Sender<bool>,
    /// Tasks that finish their current work when stopped.
    pub(crate) finishing: JoinSet<()>,
    /// Tasks that may be aborted at any await.
    pub(crate) endless: JoinSet<()>,
    process: ProcessGuard,
}

/// A forked process has none of the tasks, and locks that they share with their runtime may stay locked forever.
impl Drop for Background {
    fn drop(&mut self) {
        if self.process.is_forked() {
            std::mem::forget((std::mem::take(&mut self.finishing), std::mem::take(&mut self.endless)));
        }
    }
}

impl Background {
    /// Evicts scopes that are unused for `idle`, and removes documents after their `retention`.
    pub(crate) fn start<S: Store>(
        machine: &Arc<Machine<S>>,
        idle: Duration,
        retention: DocumentRetention,
    ) -> Self {
        let mut tasks = Self::default();
        // Intervals start here, not in their tasks, so that a runtime without timers fails in the call that opens the store.
        tasks.endless.spawn(evict(machine.clone(), ticks(idle.max(Duration::from_millis(1)))));
        tasks.endless.spawn(prune(machine.clone(), ticks(TIDY_PERIOD), retention));
        tasks
    }

    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Afterwards no task holds the machine.
    pub(crate) async fn stop(mut self) {
        if self.process.is_forked() {
            return;
        }
        self.stopping.send_replace(true);
        while self.finishing.join_next().await.is_some() {}
        self.endless.shutdown().await;
    }
}

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

async fn prune<S: Store>(machine: Arc<Machine<S>>, mut ticks: Interval, retention: DocumentRetention) {
    for tick in 0_u64.. {
        ticks.tick().await;
        // Readiness and callers report a failing store; the next tick tries again.
        let _ = machine.prune_documents(retention).await;
        if tick % PRUNE_EVERY == 0 {
            let _ = machine.prune_records().await;
        }
    }
}
