//! One pool is filled: under its lock, from positions granted for it, chunk by chunk.

use std::time::Duration;

use bates_pattern::Scope;

use super::{
    Asking, FillError, Filled, ListLook, Pool, PoolSettings, Push, Refusal, Renewal, Server, Settling,
    SharedPool,
};
use crate::ledger::{Grant, GrantError, Purpose, Want};
use crate::machine::Numbers;
use crate::range::Lease;
use crate::runtime::Runtime;
use crate::scope::Place;
use crate::series::{Entry, Value};
use crate::store::{Measured, Store};

/// How long a lock lasts that its filler does not extend.
const LOCK_LASTS: Duration = Duration::from_secs(10);

/// Positions that are granted together: what a filler that crashes loses at the most.
const GRANT_MAX: u64 = 1_000_000;

/// Positions whose numbers are rendered and pushed together: Redis answers nobody else for some two milliseconds.
const CHUNK: u64 = 20_000;

/// How often a chunk is sent whose answer was lost.
const SENDS_MAX: u32 = 3;

/// A pool, and what is needed to fill it.
pub(crate) struct Filling<'a, S> {
    pub(crate) store: &'a Measured<S>,
    pub(crate) list: &'a dyn SharedPool,
    pub(crate) runtime: &'a dyn Runtime,
    pub(crate) settings: &'a PoolSettings,
    pub(crate) entry: &'a Entry,
    pub(crate) scope: Scope,
    pub(crate) place: Place,
    pub(crate) key: Box<str>,
}

/// When the epoch of a pool began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// Before this filling.
    Before,
    /// Just now, in a pool that is new.
    Now,
    /// Just now, in a pool that its server forgot.
    Anew,
}

/// A lock that is held, and when it was last made to last.
struct Locked {
    token: String,
    since: Duration,
}

impl<S: Store> Filling<'_, S> {
    /// Fills the pool if it is low, or begins it anew if its server forgot it. Tells `progress` of numbers pushed.
    pub(crate) async fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Filled, FillError> {
        let Some(mut lock) = self.lock().await? else { return Ok(Filled::Elsewhere) };
        let filled = self.fill(&mut lock, progress).await;
        self.unlock(&lock).await;
        filled
    }

    /// Begins the pool anew if its server forgot it, and fills nothing.
    pub(crate) async fn look_after(&self) -> Result<Filled, FillError> {
        let Some(lock) = self.lock().await? else { return Ok(Filled::Elsewhere) };
        let trusted = async {
            let (server, list) = self.look().await?;
            self.trusted(&server, &list).await
        };
        let trusted = trusted.await;
        self.unlock(&lock).await;
        trusted.map(|(_, begun)| Filled::Done { pushed: 0, renewed: begun == Begun::Anew })
    }

    async fn lock(&self) -> Result<Option<Locked>, FillError> {
        let lock = Locked { token: self.runtime.new_id().to_string(), since: self.runtime.elapsed() };
        let is_free = self.list.lock(&self.key, &lock.token, LOCK_LASTS).await.map_err(FillError::Server)?;
        Ok(is_free.then_some(lock))
    }

    /// One that is not ended ends by itself.
    async fn unlock(&self, lock: &Locked) {
        let _ = self.list.unlock(&self.key, &lock.token).await;
    }

    async fn look(&self) -> Result<(Server, ListLook), FillError> {
        let looked = self.list.look(std::slice::from_ref(&self.key)).await.map_err(FillError::Server)?;
        Ok((looked.server, looked.lists.into_iter().next().unwrap_or_default()))
    }

    async fn fill(&self, lock: &mut Locked, progress: &(dyn Fn(u64) + Sync)) -> Result<Filled, FillError> {
        // Under the lock: somebody may have filled it just before.
        let (server, list) = self.look().await?;
        let (pool, begun) = self.trusted(&server, &list).await?;
        let level = if begun == Begun::Before { list.level } else { 0 };
        let lacks = self.settings.lacks(level);
        if begun == Begun::Before && lacks > 0 {
            self.settle(pool.epoch, Settling { popped_to: self.popped_to(&list), ..Settling::default() })
                .await?;
        }
        let mut pushed = 0;
        while pushed < lacks {
            let grant = match self.store.grant(self.want((lacks - pushed).min(GRANT_MAX))).await {
                // What is left is in the pool.
                Err(GrantError::Exhausted { .. }) if pushed > 0 => break,
                grant => grant?,
            };
            let before = pushed;
            self.push(grant, (pool.epoch, &server), lock, &mut |count| {
                pushed += count;
                progress(pushed);
            })
            .await?;
            if pushed == before {
                // The rules rejected all of it: others have a turn.
                tokio::task::yield_now().await;
            }
        }
        Ok(Filled::Done { pushed, renewed: begun == Begun::Anew })
    }

    /// The pool as the store knows it, if the list is of its epoch and the server has the memory of then; else begun
    /// anew.
    async fn trusted(&self, server: &Server, list: &ListLook) -> Result<(Pool, Begun), FillError> {
        if list.is_foreign {
            return Err(FillError::OtherStore(self.key.clone()));
        }
        let pool = self.store.pool(self.place.clone()).await?;
        if list.is_other || pool.epoch == 0 && list.epoch.is_none() && list.level > 0 {
            return Err(FillError::Foreign(self.key.clone()));
        }
        if let Some(epoch) = list.epoch.filter(|epoch| *epoch > pool.epoch) {
            return Err(FillError::Newer { key: self.key.clone(), epoch });
        }
        self.check_cursor(list).await?;
        if pool.server.as_ref() == Some(server) && list.epoch == Some(pool.epoch) {
            return Ok((pool, Begun::Before));
        }
        let begun = if pool.epoch == 0 { Begun::Now } else { Begun::Anew };
        let renewal = Renewal { seen: pool.epoch, server: server.clone() };
        // Invariant: only who moved the epoch in the store makes a marker for it.
        let Some(pool) = self.store.renew_pool(self.place.clone(), renewal).await? else {
            return Err(FillError::Refused(Refusal::Epoch(list.epoch)));
        };
        let renewed = self.list.renew(&self.key, pool.epoch, server).await.map_err(FillError::Server)?;
        renewed.map_err(FillError::Refused)?;
        Ok((pool, begun))
    }

    /// What was pushed was granted; a store that does not know of it has lost more than that.
    async fn check_cursor(&self, list: &ListLook) -> Result<(), FillError> {
        let Some(pushed_to) = list.pushed_to.filter(|to| *to > 0) else { return Ok(()) };
        let next = self.store.cursor(self.place.clone()).await?.map_or(0, |cursor| cursor.next);
        let key = self.key.clone();
        if next < pushed_to { Err(FillError::TakenBack { key, pushed_to, next }) } else { Ok(()) }
    }

    fn want(&self, count: u64) -> Want {
        let series = self.entry.series();
        Want {
            least: count,
            place: self.place.clone(),
            count,
            start: series.start().value(),
            end: series.end(),
            scopes_max: series.limits().scopes_max,
            purpose: Purpose::Pool,
            promise: Some(series.promise()),
            held_from: None,
        }
    }

    /// Pushes what was granted, and writes down what became of it.
    async fn push(
        &self,
        grant: Grant,
        (epoch, server): (u64, &Server),
        lock: &mut Locked,
        pushed: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), FillError> {
        let mut sent_to = grant.lease.from();
        let outcome = self.push_chunks(&grant, (epoch, server), lock, &mut sent_to, pushed).await;
        // A chunk whose fate is not known counts as pushed: somebody may have taken it.
        let settling = Settling {
            epoch,
            pushed: Lease::new(grant.lease.from(), sent_to),
            unused: Lease::new(sent_to, grant.lease.to()),
            popped_to: None,
        };
        self.settle(epoch, settling).await?;
        outcome
    }

    async fn push_chunks(
        &self,
        grant: &Grant,
        (epoch, server): (u64, &Server),
        lock: &mut Locked,
        sent_to: &mut u64,
        pushed: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), FillError> {
        let (mut from, end) = (grant.lease.from(), grant.lease.to());
        let token = &*lock.token.clone();
        let pack = async |from: u64, to: u64| {
            let numbers = self.render(from, to).await;
            let push = Push { epoch, server, token, fence: grant.version, from, to, numbers: &numbers };
            let first = (!numbers.is_empty()).then(|| self.list.push(&self.key, push));
            (first, numbers)
        };
        let mut to = (from + CHUNK).min(end);
        let (mut first, mut numbers) = pack(from, to).await;
        while from < end {
            self.keep(lock).await?;
            self.record(&numbers, (from, to)).await?;
            let push = Push { epoch, server, token, fence: grant.version, from, to, numbers: &numbers };
            let next_to = (to + CHUNK).min(end);
            // The next chunk is rendered and packed while this one is on its way.
            let (sent, next) = tokio::join!(biased; self.send(push, first, sent_to), pack(to, next_to));
            sent?;
            pushed(numbers.len() as u64);
            (from, to) = (to, next_to);
            (first, numbers) = next;
        }
        Ok(())
    }

    /// Sends a chunk, which was packed if it has any numbers; again if its answer was lost: it is pushed once.
    async fn send(
        &self,
        push: Push<'_>,
        mut packed: Option<Asking<'_, Result<(), Refusal>>>,
        sent_to: &mut u64,
    ) -> Result<(), FillError> {
        let mut sends = 1;
        while let Some(asking) = packed {
            match asking.await {
                // Refused at once, it was surely not pushed.
                Ok(Err(refusal)) if sends == 1 => return Err(FillError::Refused(refusal)),
                Ok(Err(refusal)) => {
                    *sent_to = push.to;
                    return Err(FillError::Refused(refusal));
                }
                Ok(Ok(())) => break,
                Err(error) if sends == SENDS_MAX => {
                    *sent_to = push.to;
                    return Err(FillError::Server(error));
                }
                Err(_) => sends += 1,
            }
            packed = Some(self.list.push(&self.key, push));
        }
        *sent_to = push.to;
        Ok(())
    }

    /// Sees to it that the lock lasts: by a clock that nobody sets.
    async fn keep(&self, lock: &mut Locked) -> Result<(), FillError> {
        let now = self.runtime.elapsed();
        if now.saturating_sub(lock.since) < LOCK_LASTS / 3 {
            return Ok(());
        }
        lock.since = now;
        let extended = self.list.extend(&self.key, &lock.token, LOCK_LASTS).await;
        if extended.map_err(FillError::Server)? { Ok(()) } else { Err(FillError::Refused(Refusal::Fenced)) }
    }

    async fn render(&self, from: u64, to: u64) -> Numbers {
        let Some(lease) = Lease::new(from, to) else { return Numbers::default() };
        let (scope, value) = (self.scope.clone(), self.settings.value);
        let rendered = self.runtime.computed(move || Numbers::rendered(&scope, lease, value));
        rendered.await.expect("rendering does not panic")
    }

    /// Below which position everything was taken: all before the first element of the list, which is taken next.
    fn popped_to(&self, list: &ListLook) -> Option<u64> {
        let Some(head) = &list.head else { return list.pushed_to };
        let pattern = self.entry.series().pattern();
        match self.settings.value {
            Value::Id => pattern.parse(head).ok().map(|parsed| parsed.position().value()),
            Value::Seq if pattern.counts_in_decimal() && !pattern.is_shuffled() => head.parse().ok(),
            Value::Seq => None,
        }
    }

    async fn settle(&self, epoch: u64, settling: Settling) -> Result<(), FillError> {
        let settling = Settling { epoch, ..settling };
        Ok(self.store.settle_pool(self.place.clone(), settling).await?)
    }
}
