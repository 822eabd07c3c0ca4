//! The filler: watches the pools of one series, fills those that are low and renews those that their server lost. Never
//! delays a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::machine::PAGE;
use super::watched::WatchedPools;
use super::{
    FillError, FillOutcome, FillResult, ListRefusal, ListStatus, Pool, PoolSet, ServerIdentity, ServerStatus,
};
use crate::machine::Machine;
use crate::scope::{ScopeKey, each_page};
use crate::series::SeriesEntry;
use crate::store::Store;

/// The pause between two reads of the lists. It doubles while no list changes.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The pause between two attempts to reach a server. Short, because programs that use plain `LPOP` may get numbers twice
/// until the filler has noticed a restart.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// How often the filler reads from the store which scopes have a pool.
const SCOPES_EVERY: Duration = Duration::from_secs(10);

const FILLS_MAX: usize = 4;

/// How long the filler waits after a pool could not be filled.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Reports messages for people.
pub type Reporter = Box<dyn Fn(&str) + Send + Sync>;

pub struct Filler<S> {
    pub(super) machine: Arc<Machine<S>>,
    pub(super) entry: Arc<SeriesEntry>,
    pub(super) pools: Arc<PoolSet>,
    report: Reporter,
    /// When a renewal was last reported.
    renewal_reported: Mutex<Option<Duration>>,
    /// [`Machine::generation`] when the pools were last read.
    generation: AtomicU64,
}

impl<S: Store> Filler<S> {
    /// `None` if the series has no pools.
    pub fn new(machine: Arc<Machine<S>>, entry: Arc<SeriesEntry>, report: Reporter) -> Option<Arc<Self>> {
        let pools = machine.pool_set(entry.series().name())?;
        let (renewal_reported, generation) = (Mutex::default(), AtomicU64::default());
        Some(Arc::new(Self { machine, entry, pools, report, renewal_reported, generation }))
    }

    /// Watches and fills until it is stopped; fillings under way then end.
    pub async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let filler = self;
        let (mut all, mut fills, mut trouble) = (WatchedPools::new(), Fills::new(), None);
        let (mut pause, mut scopes_at) = (PAUSE_MIN, Duration::ZERO);
        while !*stopped.borrow() {
            let status = filler.check_lists(&mut all, &mut scopes_at, &mut fills).await;
            filler.pools.is_up.store(status.is_ok(), Ordering::Relaxed);
            pause = match &status {
                Ok(true) => PAUSE_MIN,
                Ok(false) => (pause * 2).min(PAUSE_MAX),
                Err(_) => {
                    // The levels are unknown.
                    filler.pools.levels.lock().clear();
                    RECONNECT_PAUSE
                }
            };
            filler.report_trouble(&mut trouble, status.err());
            tokio::select! {
                biased;
                // First: frequent requests must not keep ended fillings from being collected.
                Some(ended) = fills.next(), if !fills.is_empty() => filler.fill_ended(&mut all, ended),
                () = filler.machine.runtime.sleep(pause) => {}
                () = filler.pools.wake_filler.notified() => scopes_at = Duration::ZERO,
                _ = stopped.changed() => {}
            }
        }
        while fills.next().await.is_some() {}
    }

    /// Empties all lists, and begins new epochs, so that what they held are gaps: for a series that was retired. Call it
    /// when the filler has stopped. Another filler may fill the lists again.
    pub async fn discard_lists(&self) -> Result<(), FillError> {
        let read = |after| self.machine.stored_pools(&self.entry, after, PAGE);
        let mut scopes = Vec::new();
        each_page(read, |scope, _| scopes.push(scope)).await?;
        for scope in scopes {
            self.pools.empty_list(&scope).await?;
            self.machine.fill_or_renew(&self.pools, &self.entry, &scope, None).await?;
        }
        Ok(())
    }

    /// Reads all lists once. Returns whether any changed or is being filled.
    async fn check_lists(
        self: &Arc<Self>,
        all: &mut WatchedPools,
        scopes_at: &mut Duration,
        fills: &mut Fills,
    ) -> Result<bool, Box<str>> {
        let (now, generation) = (self.machine.elapsed(), self.machine.generation());
        // After a recall or a restore, the store no longer trusts the lists of some pools.
        if now >= *scopes_at || self.generation.swap(generation, Ordering::Relaxed) != generation {
            self.read_scopes(all).await.map_err(|error| error.to_string())?;
            *scopes_at = now + SCOPES_EVERY;
        }
        let mut has_changed = false;
        let scopes: Vec<ScopeKey> = all.keys().cloned().collect();
        for page in scopes.chunks(PAGE) {
            let keys: Vec<Box<str>> = page.iter().map(|scope| all[scope].key.clone()).collect();
            let status = self.pools.server.status(&keys).await?;
            has_changed |= self.compare(all, page, status, fills).await?;
        }
        let levels = all.iter().map(|(scope, watched)| (scope.clone(), watched.level)).collect();
        *self.pools.levels.lock() = levels;
        Ok(has_changed || !fills.is_empty())
    }

    /// Compares lists with the state of their pools, and starts fillings. Returns whether a level changed.
    async fn compare(
        self: &Arc<Self>,
        all: &mut WatchedPools,
        scopes: &[ScopeKey],
        ServerStatus { server, lists }: ServerStatus,
        fills: &mut Fills,
    ) -> Result<bool, Box<str>> {
        let is_untrusted = |(scope, list): (&ScopeKey, &ListStatus)| !all[scope].is_trusted(&server, list);
        if scopes.iter().zip(&lists).any(is_untrusted) {
            // Another process may have renewed them.
            self.read_pools(all).await.map_err(|error| error.to_string())?;
            self.discard(all, scopes, &server).await?;
        }
        self.discard_rewound(all, scopes, &lists, &server).await?;
        let (mut has_changed, now) = (false, self.machine.elapsed());
        for (scope, list) in scopes.iter().zip(&lists) {
            let Some(watched) = all.get_mut(scope) else { continue };
            has_changed |= watched.level != list.level;
            watched.level = list.level;
            let is_trusted = watched.is_trusted(&server, list);
            if is_trusted && let Some(to) = list.pushed_to {
                // Another node, or an earlier process, may have been granted all that is left.
                self.entry.counts.usage.raise(scope.parts().1, to);
            }
            let is_low = self.pools.settings.refill_count(list.level) > 0;
            let is_due = is_low || !is_trusted;
            if is_due && now >= watched.not_before && fills.len() < FILLS_MAX {
                watched.not_before = Duration::MAX;
                let (filler, scope) = (self.clone(), scope.clone());
                let runtime = self.machine.runtime.clone();
                fills.push(runtime.spawn_for(async move {
                    let filled = filler.machine.fill_pool(&filler.entry, &scope, &|_| {}).await;
                    (scope, filled)
                }));
            }
        }
        Ok(has_changed)
    }

    /// Empties lists whose epoch began on another server identity, before anything else: after a restart they may hold
    /// numbers that were already taken, and programs that use plain `LPOP` would get them again.
    async fn discard(
        &self,
        all: &WatchedPools,
        scopes: &[ScopeKey],
        server: &ServerIdentity,
    ) -> Result<(), Box<str>> {
        // Invariant: a list that another process renewed meanwhile has a later epoch, and is not emptied.
        let is_stale = |pool: &Pool| pool.epoch > 0 && pool.server.as_ref() != Some(server);
        let stale =
            scopes.iter().filter_map(|scope| all.get(scope)).filter(|watched| is_stale(&watched.pool));
        let stale: Vec<_> = stale.map(|watched| (watched.key.clone(), watched.pool.epoch)).collect();
        if stale.is_empty() { Ok(()) } else { self.pools.server.discard(&stale, server).await }
    }

    /// Empties lists whose marker moved back within its epoch: the server loaded older data without a restart. The next check
    /// renews them.
    async fn discard_rewound(
        &self,
        all: &mut WatchedPools,
        scopes: &[ScopeKey],
        lists: &[ListStatus],
        server: &ServerIdentity,
    ) -> Result<(), Box<str>> {
        let mut rewound = Vec::new();
        for (scope, list) in scopes.iter().zip(lists) {
            let Some(watched) = all.get_mut(scope) else { continue };
            let (Some(epoch), Some(to), false) = (list.epoch, list.pushed_to, list.is_of_other_store) else {
                continue;
            };
            if watched.seen_epoch == epoch && to < watched.pushed_to {
                rewound.push((watched.key.clone(), epoch));
            }
            (watched.seen_epoch, watched.pushed_to) = (epoch, to);
        }
        if rewound.is_empty() { Ok(()) } else { self.pools.server.discard(&rewound, server).await }
    }

    fn fill_ended(&self, all: &mut WatchedPools, ended: Result<EndedFill, oneshot::error::RecvError>) {
        let Ok((scope, filled)) = ended else {
            // The filling panicked, and it is unknown which pool it was for.
            let later = self.machine.elapsed() + FAILURE_PAUSE;
            for watched in all.values_mut() {
                watched.not_before = watched.not_before.min(later);
            }
            return;
        };
        let Some(watched) = all.get_mut(&scope) else { return };
        let now = self.machine.elapsed();
        watched.not_before = match filled {
            Ok(FillOutcome::Done { renewed, .. }) => {
                if std::mem::replace(&mut watched.failure_reported, false) {
                    (self.report)(&format!("the pool {} is filled again", watched.key));
                }
                if renewed {
                    self.report_renewal(&watched.key, now);
                }
                now
            }
            // The other filler needs some time.
            Ok(FillOutcome::Skipped)
            | Err(FillError::Refused(ListRefusal::Epoch(_) | ListRefusal::Server(_) | ListRefusal::Fenced)) => {
                now + PAUSE_MIN
            }
            Err(error) => {
                if !std::mem::replace(&mut watched.failure_reported, true) {
                    (self.report)(&format!("the pool {} cannot be filled: {error}", watched.key));
                }
                now + FAILURE_PAUSE
            }
        };
    }

    fn name(&self) -> String {
        format!("the pools of series {:?} at {}", self.entry.series().name().as_str(), self.pools.describe())
    }

    /// A server restart renews many pools: report only the first.
    fn report_renewal(&self, key: &str, now: Duration) {
        let mut last = self.renewal_reported.lock();
        if last.is_none_or(|last| now.saturating_sub(last) > SCOPES_EVERY) {
            *last = Some(now);
            (self.report)(&format!(
                "the pool {key} was renewed: Redis restarted or lost data, and its old numbers are gaps; renewals of other \
                 pools soon after are not reported"
            ));
        }
    }

    /// Reports trouble when it begins and when it ends.
    fn report_trouble(&self, trouble: &mut Option<Box<str>>, now: Option<Box<str>>) {
        match (&now, &*trouble) {
            (Some(now), None) => (self.report)(&format!("{} cannot be watched: {now}", self.name())),
            (None, Some(_)) => (self.report)(&format!("{} are watched again", self.name())),
            _ => {}
        }
        *trouble = now;
    }
}

type EndedFill = (ScopeKey, FillResult);
type Fills = FuturesUnordered<oneshot::Receiver<EndedFill>>;
