//! The filler: watches the pools of one series, fills those that are low and begins those anew whose server forgot.
//! Never in the way of a request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{FillError, Filled, KeptPools, ListLook, Looked, Pool, Pools, ScopeMatch, Server};
use crate::machine::{Entry, Machine};
use crate::place::ScopeKey;
use crate::store::StoreError;

/// How often lists are looked at that change, and those that do not.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Between two tries to reach a server that is away: soon, because who takes from it directly may be given numbers
/// again until the filler has seen that it restarted.
const AWAY: Duration = Duration::from_millis(100);

/// How often it is looked which scopes there are.
const SCOPES_EVERY: Duration = Duration::from_secs(10);

/// Pools that are filled together.
const FILLS_MAX: usize = 4;

/// Pools that a process keeps for a series.
const POOLS_MAX: usize = 10_000;

/// Lists that are looked at together, and scopes that are read together.
const PAGE: usize = 1_000;

/// A pool that could not be filled is left alone for this time.
const FAILED: Duration = Duration::from_secs(5);

/// What a filler has to tell people.
pub type Telling = Box<dyn Fn(&str) + Send + Sync>;

/// Keeps the pools of one series.
pub struct Filler<S> {
    machine: Arc<Machine<S>>,
    entry: Arc<Entry>,
    kept: Arc<KeptPools>,
    tell: Telling,
}

/// A pool that is watched.
struct Watched {
    key: Box<str>,
    /// As the store knew it.
    pool: Pool,
    level: u64,
    /// Not to be filled before this time.
    not_before: Duration,
    /// Whether somebody was told that it cannot be filled.
    is_told: bool,
}

impl Watched {
    /// Whether its list is the one that the store knows.
    fn is_trusted(&self, server: &Server, list: &ListLook) -> bool {
        self.pool.server.as_ref() == Some(server) && list.epoch == Some(self.pool.epoch)
    }
}

type All = BTreeMap<ScopeKey, Watched>;

impl<S: Pools> Filler<S> {
    /// A filler that has not begun. `None` if the series has no pools.
    pub fn new(machine: Arc<Machine<S>>, entry: Arc<Entry>, tell: Telling) -> Option<Self> {
        let kept = machine.kept(entry.series().name())?.clone();
        Some(Self { machine, entry, kept, tell })
    }

    /// Watches and fills until it is told to stop; what is under way is then ended.
    pub async fn run(self, mut stopped: watch::Receiver<bool>) {
        let filler = Arc::new(self);
        let (mut all, mut fills, mut trouble) = (All::new(), JoinSet::new(), None);
        let (mut pause, mut scopes_at) = (PAUSES.0, Duration::ZERO);
        while !*stopped.borrow() {
            let looked = filler.turn(&mut all, &mut scopes_at, &mut fills).await;
            pause = match &looked {
                Ok(true) => PAUSES.0,
                Ok(false) => (pause * 2).min(PAUSES.1),
                Err(_) => AWAY,
            };
            filler.tell_once(&mut trouble, looked.err());
            tokio::select! {
                () = sleep(pause) => {}
                () = filler.kept.asked.notified() => scopes_at = Duration::ZERO,
                Some(ended) = fills.join_next(), if !fills.is_empty() => filler.ended(&mut all, ended),
                _ = stopped.changed() => {}
            }
        }
        while fills.join_next().await.is_some() {}
    }

    /// One look at everything. Answers whether anything changed.
    async fn turn(
        self: &Arc<Self>,
        all: &mut All,
        scopes_at: &mut Duration,
        fills: &mut Fills,
    ) -> Result<bool, Box<str>> {
        let now = self.machine.elapsed();
        if now >= *scopes_at {
            self.read_scopes(all).await.map_err(|error| error.to_string())?;
            *scopes_at = now + SCOPES_EVERY;
        }
        let mut has_changed = false;
        let scopes: Vec<ScopeKey> = all.keys().cloned().collect();
        for page in scopes.chunks(PAGE) {
            let keys: Vec<Box<str>> = page.iter().map(|scope| all[scope].key.clone()).collect();
            let looked = self.kept.list.look(&keys).await?;
            has_changed |= self.compare(all, page, looked, fills).await?;
        }
        let levels = all.iter().map(|(scope, watched)| (scope.clone(), watched.level)).collect();
        *self.kept.levels.lock() = levels;
        Ok(has_changed || !fills.is_empty())
    }

    /// Compares lists with what is known of their pools, and starts what has to be done.
    async fn compare(
        self: &Arc<Self>,
        all: &mut All,
        scopes: &[ScopeKey],
        Looked { server, lists }: Looked,
        fills: &mut Fills,
    ) -> Result<bool, Box<str>> {
        let is_strange = |(scope, list): (&ScopeKey, &ListLook)| !all[scope].is_trusted(&server, list);
        if scopes.iter().zip(&lists).any(is_strange) {
            // Somebody else may have begun them anew.
            self.read_pools(all).await.map_err(|error| error.to_string())?;
            self.discard(all, scopes, &server).await?;
        }
        let (mut has_changed, now) = (false, self.machine.elapsed());
        for (scope, list) in scopes.iter().zip(&lists) {
            let Some(watched) = all.get_mut(scope) else { continue };
            has_changed |= watched.level != list.level;
            watched.level = list.level;
            let is_due = !watched.is_trusted(&server, list) || self.kept.settings.lacks(list.level) > 0;
            if is_due && now >= watched.not_before && fills.len() < FILLS_MAX {
                // Until it has ended.
                watched.not_before = Duration::MAX;
                let (filler, scope) = (self.clone(), scope.clone());
                fills.spawn(async move {
                    let filled = filler.machine.fill(&filler.entry, &scope, &|_| {}).await;
                    (scope, filled)
                });
            }
        }
        Ok(has_changed)
    }

    /// Empties lists that the server has from another memory, at once and before anything else: who takes from them
    /// directly would get numbers again.
    async fn discard(&self, all: &All, scopes: &[ScopeKey], server: &Server) -> Result<(), Box<str>> {
        // Invariant: a pool that was begun anew on this server has a later epoch, and is left alone.
        let is_stale =
            |watched: &&Watched| watched.pool.epoch > 0 && watched.pool.server.as_ref() != Some(server);
        let stale = scopes.iter().filter_map(|scope| all.get(scope)).filter(is_stale);
        let stale: Vec<(Box<str>, u64)> =
            stale.map(|watched| (watched.key.clone(), watched.pool.epoch)).collect();
        if stale.is_empty() { Ok(()) } else { self.kept.list.discard(&stale).await }
    }

    /// A filling has ended: the pool may be filled again, now or after a while.
    fn ended(
        &self,
        all: &mut All,
        ended: Result<(ScopeKey, Result<Filled, FillError>), tokio::task::JoinError>,
    ) {
        let Ok((scope, filled)) = ended else { return };
        let Some(watched) = all.get_mut(&scope) else { return };
        let now = self.machine.elapsed();
        watched.not_before = match filled {
            Ok(Filled::Done { .. }) => {
                watched.is_told = false;
                now
            }
            // Whoever fills it needs some time.
            Ok(Filled::Elsewhere) | Err(FillError::Refused(_)) => now + PAUSES.0,
            Err(error) => {
                if !std::mem::replace(&mut watched.is_told, true) {
                    (self.tell)(&format!("the pool {} cannot be filled: {error}", watched.key));
                }
                now + FAILED
            }
        };
    }

    /// The scopes that have a pool: those that were asked for, those that are listed, and those that match.
    async fn read_scopes(&self, all: &mut All) -> Result<(), StoreError> {
        let name = self.entry.series().name();
        self.read_pools(all).await?;
        for parameters in self.kept.settings.scopes.iter().filter_map(ScopeMatch::one) {
            // One that is no scope of the series was refused with the configuration.
            let Some(scope) = self.machine.pool_scope(&self.entry, &parameters) else { continue };
            self.watch(all, scope, None);
        }
        if self.kept.settings.scopes.iter().all(|matching| matching.one().is_some()) {
            return Ok(());
        }
        let mut after = None;
        loop {
            let page = self.machine.scopes(name.clone(), after, PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            for (scope, _) in page {
                if self.kept.settings.scopes.iter().any(|matching| matching.matches(&scope)) {
                    self.watch(all, scope, None);
                }
            }
        }
    }

    /// The pools as the store knows them.
    async fn read_pools(&self, all: &mut All) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.machine.pools_of(&self.entry, after, PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            for (scope, pool) in page {
                self.watch(all, scope, Some(pool));
            }
        }
    }

    fn watch(&self, all: &mut All, scope: ScopeKey, pool: Option<Pool>) {
        if let Some(watched) = all.get_mut(&scope) {
            watched.pool = pool.unwrap_or_else(|| watched.pool.clone());
        } else if all.len() < POOLS_MAX
            && let Some(key) = self.kept.key(&scope)
        {
            let pool = pool.unwrap_or_default();
            all.insert(scope, Watched { key, pool, level: 0, not_before: Duration::ZERO, is_told: false });
        }
    }

    /// Trouble is told when it begins, and when it ends.
    fn tell_once(&self, trouble: &mut Option<Box<str>>, now: Option<Box<str>>) {
        match (&now, &*trouble) {
            (Some(now), None) => (self.tell)(&format!("pools cannot be watched: {now}")),
            (None, Some(_)) => (self.tell)("pools are watched again"),
            _ => {}
        }
        *trouble = now;
    }
}

type Fills = JoinSet<(ScopeKey, Result<Filled, FillError>)>;
