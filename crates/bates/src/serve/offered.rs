//! Runs what series need that were created at run time, with what the configuration of this node offers them: delivers
//! their documents to sinks, and fills their pools. Must never use an offer that the series does not have: its documents wait
//! for a node that offers the sink.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Filler, Machine, Relay, RelaySettings, SeriesEntry, SeriesName, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::background::ticks;
use crate::config::{OfferedPools, OfferedSinks, SeriesPool, find_offer};
use crate::output;

/// How soon a new series is served.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

/// What runs beside each series that names an offer.
pub(super) trait OfferedTask<S: Store>: Send + 'static {
    /// The name of the offer, as the series names it.
    fn wanted(entry: &SeriesEntry) -> Option<&str>;

    /// Begins beside a series, until it is stopped. `Err`: why not; `None`: it is not offered.
    fn start(
        &self,
        tasks: &mut JoinSet<()>,
        entry: &Arc<SeriesEntry>,
        stopped: watch::Receiver<bool>,
    ) -> Option<Result<(), String>>;

    /// What it means for the series that nothing runs, and why.
    fn describe_problem(series: &str, wanted: &str, problem: impl Display) -> String;
}

pub(super) struct SinkTasks<S> {
    pub(super) machine: Arc<Machine<S>>,
    pub(super) offers: OfferedSinks,
    pub(super) settings: RelaySettings,
}

impl<S: Store> OfferedTask<S> for SinkTasks<S> {
    fn wanted(entry: &SeriesEntry) -> Option<&str> {
        entry.spec().offered_sink.as_deref()
    }

    fn start(
        &self,
        tasks: &mut JoinSet<()>,
        entry: &Arc<SeriesEntry>,
        stopped: watch::Receiver<bool>,
    ) -> Option<Result<(), String>> {
        let sink = find_offer(&self.offers, Self::wanted(entry)?, entry.series().name())?.open();
        Some(sink.map_err(|error| error.to_string()).map(|sink| {
            let relay = Relay::new(self.machine.clone(), entry.clone(), sink, self.settings);
            tasks.spawn(relay.run(stopped));
        }))
    }

    fn describe_problem(series: &str, wanted: &str, problem: impl Display) -> String {
        format!("the documents of series {series:?} wait: sink {wanted:?}: {problem}")
    }
}

pub(super) struct PoolTasks<S> {
    pub(super) machine: Arc<Machine<S>>,
    pub(super) offers: OfferedPools,
    /// Those of series in the configuration.
    pub(super) configured: Vec<SeriesPool>,
}

impl<S: Store> OfferedTask<S> for PoolTasks<S> {
    fn wanted(entry: &SeriesEntry) -> Option<&str> {
        entry.spec().offered_pool.as_deref()
    }

    fn start(
        &self,
        tasks: &mut JoinSet<()>,
        entry: &Arc<SeriesEntry>,
        stopped: watch::Receiver<bool>,
    ) -> Option<Result<(), String>> {
        let opened = open_offered_pool(&self.machine, entry, &self.offers, &self.configured)?;
        let report = Box::new(|text: &str| output::print_note(text));
        let started = opened.map(|()| {
            if let Some(filler) = Filler::new(self.machine.clone(), entry.clone(), report) {
                tasks.spawn(fill_until_retired(self.machine.clone(), filler, entry.clone(), stopped));
            }
        });
        Some(started)
    }

    fn describe_problem(series: &str, wanted: &str, problem: impl Display) -> String {
        format!("the pools of series {series:?} are not filled: pool {wanted:?}: {problem}")
    }
}

/// Gives a series the pool that it names. `None`: no pool of this name is offered to it.
pub(crate) fn open_offered_pool<S: Store>(
    machine: &Machine<S>,
    entry: &SeriesEntry,
    offers: &OfferedPools,
    configured: &[SeriesPool],
) -> Option<Result<(), String>> {
    let name = entry.series().name();
    let pool = find_offer(offers, entry.spec().offered_pool.as_deref()?, name)?;
    let pool = SeriesPool::offered(entry.spec(), pool.clone(), configured);
    let opened = pool.and_then(|pool| pool.open(machine.identity()).map_err(|error| error.to_string()));
    Some(opened.map(|pools| machine.set_pools(name.clone(), pools)))
}

/// Programs must not take numbers of a retired series: its lists are emptied.
async fn fill_until_retired<S: Store>(
    machine: Arc<Machine<S>>,
    filler: Arc<Filler<S>>,
    entry: Arc<SeriesEntry>,
    stopped: watch::Receiver<bool>,
) {
    filler.clone().run(stopped).await;
    let name = entry.series().name();
    let now = machine.series(name.as_str());
    let has_same_pool = |now: Arc<SeriesEntry>| now.spec().offered_pool == entry.spec().offered_pool;
    if now.is_some_and(has_same_pool) {
        return;
    }
    if let Err(error) = filler.discard_lists().await {
        let name = name.as_str();
        output::print_note(&format!(
            "series {name:?} was retired, and its lists in Redis were not emptied: {error}. Remove the keys that \
             `GET /v1/pools` named, or programs keep taking its numbers"
        ));
    }
}

struct Running {
    entry: Arc<SeriesEntry>,
    stopping: watch::Sender<bool>,
}

/// The task ends what it has begun.
impl Drop for Running {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
    }
}

pub(super) struct OfferedTasks<S: Store, T> {
    machine: Arc<Machine<S>>,
    kind: T,
    running: BTreeMap<SeriesName, Running>,
    tasks: JoinSet<()>,
    /// Series that were reported because nothing runs for them.
    reported: HashSet<SeriesName>,
}

impl<S: Store, T: OfferedTask<S>> OfferedTasks<S, T> {
    pub(super) fn new(machine: Arc<Machine<S>>, kind: T) -> Self {
        let (running, tasks, reported) = (BTreeMap::new(), JoinSet::new(), HashSet::new());
        Self { machine, kind, running, tasks, reported }
    }

    /// Runs until a stop is requested; then the tasks end.
    pub(super) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = ticks(LOOK_PERIOD);
        while !*stopped.borrow() {
            self.follow_series();
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.changed() => break,
            }
        }
        self.running.clear();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Starts a task for each series that has none, and another one when a series was changed.
    fn follow_series(&mut self) {
        let registry = self.machine.registry();
        let named = registry.entries().filter(|entry| T::wanted(entry).is_some());
        let named: BTreeMap<SeriesName, Arc<SeriesEntry>> =
            named.map(|entry| (entry.series().name().clone(), entry.clone())).collect();
        self.running
            .retain(|name, running| named.get(name).is_some_and(|entry| Arc::ptr_eq(entry, &running.entry)));
        for (name, entry) in named {
            if !self.running.contains_key(&name) {
                self.start(name, entry);
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    fn start(&mut self, name: SeriesName, entry: Arc<SeriesEntry>) {
        let (stopping, stopped) = watch::channel(false);
        let problem = match self.kind.start(&mut self.tasks, &entry, stopped) {
            Some(Ok(())) => {
                self.running.insert(name, Running { entry, stopping });
                return;
            }
            Some(Err(problem)) => problem,
            None => "the configuration of this node does not offer it to the series".to_owned(),
        };
        if self.reported.insert(name.clone()) {
            let wanted = T::wanted(&entry).unwrap_or_default();
            output::print_note(&T::describe_problem(name.as_str(), wanted, problem));
        }
    }
}
