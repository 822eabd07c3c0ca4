//! What a server does besides answering: documents are delivered, what is over is voided or removed, gaps are found.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bates_core::{Machine, Relay, RelaySettings, State, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::config::{DocumentsOf, SinkOf};
use crate::output;

/// How late a reservation is voided at the most.
const TIDY_PERIOD: Duration = Duration::from_secs(1);

/// Old records are looked for once in so many times: each series is asked for its own.
const PRUNE_EVERY: u64 = 60;

/// The relays of a node: one for each series with a sink.
pub(super) struct Relays {
    stopping: watch::Sender<bool>,
    running: JoinSet<()>,
}

impl Relays {
    pub(super) fn start<S: Store>(
        machine: &Arc<Machine<S>>,
        sinks: &[SinkOf],
        tries_max: u32,
    ) -> anyhow::Result<Self> {
        let (stopping, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        for SinkOf { series, sink } in sinks {
            let context = || format!("the sink of series {:?}", series.as_str());
            let sink = sink.open().with_context(context)?;
            let entry = machine.named(series.as_str()).with_context(context)?;
            let settings = RelaySettings { tries_max, ..RelaySettings::default() };
            running.spawn(Relay::new(machine.clone(), entry, sink, settings).run(stopped.clone()));
        }
        Ok(Self { stopping, running })
    }

    /// Ends what is under way.
    pub(super) async fn stop(mut self) {
        // Those that have ended already need not hear of it.
        let _ = self.stopping.send(true);
        while self.running.join_next().await.is_some() {}
    }
}

/// Says which documents wait for a sink that the configuration does not name any more.
pub(super) async fn tell_undeliverable<S: Store>(machine: &Machine<S>) -> anyhow::Result<()> {
    for (series, state, count) in machine.tally().await? {
        let has_sink = machine.named(series.as_str()).is_some_and(|entry| entry.spec().has_sink);
        if state == State::Pending && !has_sink {
            let documents = output::counted(count, "document");
            output::print_note(&format!(
                "{documents} of series {:?} wait, and it has no sink",
                series.as_str()
            ));
        }
    }
    Ok(())
}

/// Has the documents of users looked at when gaps are looked for.
pub(super) fn know_documents<S: Store>(
    machine: &Machine<S>,
    documents: &[DocumentsOf],
) -> anyhow::Result<()> {
    let mut known = HashMap::new();
    for DocumentsOf { series, documents } in documents {
        let context = || format!("the documents of series {:?}", series.as_str());
        known.insert(series.clone(), documents.open().with_context(context)?);
    }
    machine.know_documents(known);
    Ok(())
}

/// Voids reservations whose time is over, and removes what was delivered, or recorded, long ago.
pub(super) async fn tidy<S: Store>(machine: Arc<Machine<S>>, retention: Duration) {
    let mut ticks = tokio::time::interval(TIDY_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in 0_u64.. {
        ticks.tick().await;
        // A store that fails is told of by readiness, and asked again.
        let _ = machine.tidy(retention).await;
        if tick % PRUNE_EVERY == 0 {
            let _ = machine.prune_records().await;
        }
    }
}

/// Looks for gaps now and then.
pub(super) async fn reconcile<S: Store>(machine: Arc<Machine<S>>, period: Duration) {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = machine.reconcile(None).await {
            output::print_note(&format!("gaps could not be looked for: {error}"));
        }
    }
}
