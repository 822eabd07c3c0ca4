//! Delivers the documents of series that were created at run time, to the sinks that the configuration of this node offers
//! them. Must never deliver to a sink that is not offered to the series: its documents wait, for a node that offers it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Machine, Relay, RelaySettings, SeriesEntry, SeriesName, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::background::ticks;
use crate::config::OfferedSink;
use crate::output;

/// How soon the documents of a new series are delivered.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

struct RunningRelay {
    entry: Arc<SeriesEntry>,
    stopping: watch::Sender<bool>,
}

/// The relay finishes its batch.
impl Drop for RunningRelay {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
    }
}

pub(super) struct OfferedSinks<S> {
    machine: Arc<Machine<S>>,
    offers: BTreeMap<String, OfferedSink>,
    settings: RelaySettings,
    relays: BTreeMap<SeriesName, RunningRelay>,
    tasks: JoinSet<()>,
    /// Series that were reported because their sink is not offered here.
    waiting: HashSet<SeriesName>,
}

impl<S: Store> OfferedSinks<S> {
    pub(super) fn new(
        machine: Arc<Machine<S>>,
        offers: BTreeMap<String, OfferedSink>,
        settings: RelaySettings,
    ) -> Self {
        let (relays, tasks, waiting) = (BTreeMap::new(), JoinSet::new(), HashSet::new());
        Self { machine, offers, settings, relays, tasks, waiting }
    }

    /// Runs until a stop is requested; then the relays finish their batches.
    pub(super) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = ticks(LOOK_PERIOD);
        while !*stopped.borrow() {
            self.follow_series();
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.changed() => break,
            }
        }
        self.relays.clear();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Starts a relay for each series that has none, and another one when a series was changed.
    fn follow_series(&mut self) {
        let registry = self.machine.registry();
        let named = registry.entries().filter(|entry| entry.spec().offered_sink.is_some());
        let named: BTreeMap<SeriesName, Arc<SeriesEntry>> =
            named.map(|entry| (entry.series().name().clone(), entry.clone())).collect();
        self.relays
            .retain(|name, relay| named.get(name).is_some_and(|entry| Arc::ptr_eq(entry, &relay.entry)));
        for (name, entry) in named {
            if !self.relays.contains_key(&name) {
                self.start_relay(name, entry);
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    fn start_relay(&mut self, name: SeriesName, entry: Arc<SeriesEntry>) {
        let wanted = entry.spec().offered_sink.as_deref().unwrap_or_default();
        let offer = self.offers.get(wanted).filter(|offer| offer.offered_to.contains(&name));
        let problem = match offer.map(|offer| offer.sink.open()) {
            Some(Ok(sink)) => {
                let (stopping, stopped) = watch::channel(false);
                let relay = Relay::new(self.machine.clone(), entry.clone(), sink, self.settings);
                self.tasks.spawn(relay.run(stopped));
                self.relays.insert(name, RunningRelay { entry, stopping });
                return;
            }
            Some(Err(error)) => error.to_string(),
            None => "the configuration of this node does not offer it to the series".to_owned(),
        };
        if self.waiting.insert(name.clone()) {
            let name = name.as_str();
            output::print_note(&format!("the documents of series {name:?} wait: sink {wanted:?}: {problem}"));
        }
    }
}
