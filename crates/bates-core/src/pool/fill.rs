//! Fills one pool under its lock, from positions granted for it, chunk by chunk.

use std::time::Duration;

use super::{
    FillError, FillOutcome, ListRefusal, ListStatus, PoolFuture, PoolSet, PoolSettlement, PushRequest,
    RenewRequest, ServerIdentity,
};
use crate::audit::{Actor, AuditRecord, Channel};
use crate::ledger::{Grant, GrantError, GrantPurpose};
use crate::machine::Numbers;
use crate::range::PositionRange;
use crate::runtime::Runtime;
use crate::series::{ListValue, OpenScope};
use crate::store::{MeasuredStore, Store};

/// How long a lock lasts that is not extended.
const LOCK_TTL: Duration = Duration::from_secs(10);

/// Positions granted together: the most that a filler loses when it crashes.
const GRANT_MAX: u64 = 1_000_000;

/// Positions rendered and pushed together: they block Redis for some two milliseconds.
const CHUNK: u64 = 20_000;

const SENDS_MAX: u32 = 3;

pub(crate) struct PoolFill<'a, S> {
    pub(crate) store: &'a MeasuredStore<S>,
    pub(crate) pools: &'a PoolSet,
    pub(crate) runtime: &'a dyn Runtime,
    pub(crate) open: OpenScope<'a>,
    pub(crate) key: Box<str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EpochStart {
    Before,
    Now,
    /// Just now, in a pool that its server forgot.
    Anew,
}

#[derive(Clone, Copy)]
struct Epoch<'s> {
    number: u64,
    server: &'s ServerIdentity,
    start: EpochStart,
}

/// Told how many numbers were pushed so far.
pub(crate) type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// A lock that is held, and when it was last made to last.
struct ListLock {
    token: String,
    since: Duration,
}

impl<S: Store> PoolFill<'_, S> {
    /// Begins the pool anew if its server forgot it. With `progress`, which is told of numbers pushed, fills it if it is low.
    pub(crate) async fn run(&self, progress: Option<Progress<'_>>) -> Result<FillOutcome, FillError> {
        let Some(mut lock) = self.lock().await? else { return Ok(FillOutcome::Elsewhere) };
        let filled = self.fill(&mut lock, progress).await;
        // One that is not ended ends by itself.
        let _ = self.pools.list.unlock(&self.key, &lock.token).await;
        filled
    }

    async fn lock(&self) -> Result<Option<ListLock>, FillError> {
        let lock = ListLock { token: self.runtime.new_id().to_string(), since: self.runtime.elapsed() };
        let is_free =
            self.pools.list.lock(&self.key, &lock.token, LOCK_TTL).await.map_err(FillError::Server)?;
        Ok(is_free.then_some(lock))
    }

    async fn list_status(&self) -> Result<(ServerIdentity, ListStatus), FillError> {
        let status =
            self.pools.list.status(std::slice::from_ref(&self.key)).await.map_err(FillError::Server)?;
        Ok((status.server, status.lists.into_iter().next().unwrap_or_default()))
    }

    async fn fill(
        &self,
        lock: &mut ListLock,
        progress: Option<Progress<'_>>,
    ) -> Result<FillOutcome, FillError> {
        // Under the lock: somebody may have filled it just before.
        let (server, list) = self.list_status().await?;
        let epoch = self.current_or_new_epoch(&server, &list).await?;
        let level = if epoch.start == EpochStart::Before { list.level } else { 0 };
        let lacks = progress.map_or(0, |_| self.pools.settings.missing_count(level));
        if epoch.start == EpochStart::Before && lacks > 0 {
            let popped_to = self.popped_to(&list);
            self.settle(PoolSettlement { epoch: epoch.number, popped_to, ..PoolSettlement::default() })
                .await?;
        }
        let mut pushed = 0;
        while pushed < lacks {
            let count = (lacks - pushed).min(GRANT_MAX);
            let request =
                self.open.entry.series.grant_request(self.open.scope_id.clone(), count, GrantPurpose::Pool);
            let grant = match self.store.grant(request).await {
                // What was left is in the pool.
                Err(GrantError::Exhausted { .. }) if pushed > 0 => break,
                grant => grant?,
            };
            let before = pushed;
            self.push(grant, epoch, lock, &mut |count| {
                pushed += count;
                self.pools.count_pushed(count);
                if let Some(progress) = progress {
                    progress(pushed);
                }
            })
            .await?;
            if pushed == before {
                // The rules rejected all of it: let other tasks run.
                tokio::task::yield_now().await;
            }
        }
        Ok(FillOutcome::Done { pushed, renewed: epoch.start == EpochStart::Anew })
    }

    /// The epoch that the store knows, if list and server still have it; else a new one.
    async fn current_or_new_epoch<'s>(
        &self,
        server: &'s ServerIdentity,
        list: &ListStatus,
    ) -> Result<Epoch<'s>, FillError> {
        if list.is_foreign {
            return Err(FillError::OtherStore(self.key.clone()));
        }
        let pool = self.store.pool(self.open.scope_id.clone()).await?;
        if list.is_not_a_list || pool.epoch == 0 && list.epoch.is_none() && list.level > 0 {
            return Err(FillError::Foreign(self.key.clone()));
        }
        if let Some(epoch) = list.epoch.filter(|epoch| *epoch > pool.epoch) {
            return Err(FillError::Newer { key: self.key.clone(), epoch });
        }
        self.check_cursor(list).await?;
        if pool.server.as_ref() == Some(server) && list.epoch == Some(pool.epoch) {
            return Ok(Epoch { number: pool.epoch, server, start: EpochStart::Before });
        }
        let begun = if pool.epoch == 0 { EpochStart::Now } else { EpochStart::Anew };
        let renewal = RenewRequest { expected_epoch: pool.epoch, server: server.clone() };
        // Invariant: only the filler that moved the epoch in the store makes a marker for it.
        let Some(pool) = self.store.renew_pool(self.open.scope_id.clone(), renewal).await? else {
            return Err(FillError::Refused(ListRefusal::Epoch(list.epoch)));
        };
        let renewed =
            self.pools.list.renew(&self.key, pool.epoch, server).await.map_err(FillError::Server)?;
        renewed.map_err(FillError::Refused)?;
        Ok(Epoch { number: pool.epoch, server, start: begun })
    }

    /// What was pushed was granted; a store that does not know about it was restored from an older state.
    async fn check_cursor(&self, list: &ListStatus) -> Result<(), FillError> {
        let Some(pushed_to) = list.pushed_to.filter(|to| *to > 0) else { return Ok(()) };
        let next = self.store.cursor(self.open.scope_id.clone()).await?.map_or(0, |cursor| cursor.next);
        let key = self.key.clone();
        if next < pushed_to { Err(FillError::StoreRewound { key, pushed_to, next }) } else { Ok(()) }
    }

    /// Pushes a grant, and records what became of it.
    async fn push(
        &self,
        grant: Grant,
        epoch: Epoch<'_>,
        lock: &mut ListLock,
        pushed: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), FillError> {
        let mut sent_to = grant.range.from();
        let outcome = self.push_chunks(&grant, epoch, lock, &mut sent_to, pushed).await;
        // A chunk whose fate is unknown counts as pushed: a program may have taken it.
        let settlement = PoolSettlement {
            epoch: epoch.number,
            pushed: PositionRange::new(grant.range.from(), sent_to),
            unused: PositionRange::new(sent_to, grant.range.to()),
            popped_to: None,
        };
        self.settle(settlement).await?;
        outcome
    }

    async fn push_chunks(
        &self,
        grant: &Grant,
        epoch: Epoch<'_>,
        lock: &mut ListLock,
        sent_to: &mut u64,
        pushed: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), FillError> {
        let token = lock.token.clone();
        let fenced = PushFence { epoch, token: &token, fence: grant.version };
        let (mut chunk, mut rest) = grant.range.split(CHUNK);
        let (mut packed, mut numbers) = self.pack(chunk, fenced).await;
        while let Some(range) = chunk {
            self.extend_lock(lock).await?;
            self.record(&numbers, range).await?;
            let (next, behind) = rest.map_or((None, None), |rest| rest.split(CHUNK));
            let push = fenced.push(range, &numbers);
            // The next chunk is rendered and packed while this one is sent.
            let sending = self.send(push, packed, sent_to);
            let (sent, next_packed) = tokio::join!(biased; sending, self.pack(next, fenced));
            sent?;
            pushed(numbers.len() as u64);
            (chunk, rest) = (next, behind);
            (packed, numbers) = next_packed;
        }
        Ok(())
    }

    async fn pack(
        &self,
        chunk: Option<PositionRange>,
        fenced: PushFence<'_>,
    ) -> (Option<PushFuture<'_>>, Numbers) {
        let Some(range) = chunk else { return (None, Numbers::default()) };
        let (scope, value) = (self.open.scope.clone(), self.pools.settings.value);
        let rendered = self.runtime.run_blocking(move || Numbers::rendered(&scope, range, value)).await;
        let numbers = rendered.expect("rendering does not panic");
        let packed =
            (!numbers.is_empty()).then(|| self.pools.list.push(&self.key, fenced.push(range, &numbers)));
        (packed, numbers)
    }

    /// Records a chunk of an audited series before it is pushed: from then on any program may take from it.
    async fn record(&self, numbers: &Numbers, range: PositionRange) -> Result<(), FillError> {
        if !self.open.entry.spec.audit.is_on() {
            return Ok(());
        }
        let who = format!("pool {}", self.key);
        let stamp = Actor { caller: &who, channel: Channel::Pool }.stamp(self.runtime.now());
        let (id, all) = (self.runtime.new_id(), 0..numbers.len());
        match AuditRecord::of_numbers(id, &self.open.scope_id, range, numbers, all, &stamp) {
            Some(record) => Ok(self.store.record(vec![record]).await?),
            None => Ok(()),
        }
    }

    /// Sends a packed chunk, again if its answer was lost: the server pushes it once.
    async fn send(
        &self,
        push: PushRequest<'_>,
        mut packed: Option<PushFuture<'_>>,
        sent_to: &mut u64,
    ) -> Result<(), FillError> {
        let mut sends = 1;
        while let Some(asking) = packed {
            match asking.await {
                Ok(Err(refusal)) => {
                    // Refused on the first send, it was certainly not pushed.
                    if sends > 1 {
                        *sent_to = push.to;
                    }
                    return Err(FillError::Refused(refusal));
                }
                Ok(Ok(())) => break,
                Err(error) if sends == SENDS_MAX => {
                    *sent_to = push.to;
                    return Err(FillError::Server(error));
                }
                Err(_) => sends += 1,
            }
            packed = Some(self.pools.list.push(&self.key, push));
        }
        *sent_to = push.to;
        Ok(())
    }

    /// Extends the lock in time, by the clock that never jumps.
    async fn extend_lock(&self, lock: &mut ListLock) -> Result<(), FillError> {
        let now = self.runtime.elapsed();
        if now.saturating_sub(lock.since) < LOCK_TTL / 3 {
            return Ok(());
        }
        lock.since = now;
        let extended = self.pools.list.extend(&self.key, &lock.token, LOCK_TTL).await;
        if extended.map_err(FillError::Server)? {
            Ok(())
        } else {
            Err(FillError::Refused(ListRefusal::Fenced))
        }
    }

    /// The position below which everything was taken: the first element of the list is taken next.
    fn popped_to(&self, list: &ListStatus) -> Option<u64> {
        let Some(head) = &list.head else { return list.pushed_to };
        let pattern = self.open.entry.series.pattern();
        match self.pools.settings.value {
            ListValue::Id => pattern.parse(head).ok().map(|parsed| parsed.position().value()),
            ListValue::Seq if pattern.counts_in_decimal() && !pattern.is_shuffled() => head.parse().ok(),
            ListValue::Seq => None,
        }
    }

    async fn settle(&self, settlement: PoolSettlement) -> Result<(), FillError> {
        Ok(self.store.settle_pool(self.open.scope_id.clone(), settlement).await?)
    }
}

type PushFuture<'a> = PoolFuture<'a, Result<(), ListRefusal>>;

/// What the server compares before it takes a chunk of a grant.
#[derive(Clone, Copy)]
struct PushFence<'a> {
    epoch: Epoch<'a>,
    token: &'a str,
    fence: u64,
}

impl<'a> PushFence<'a> {
    fn push(self, range: PositionRange, numbers: &'a Numbers) -> PushRequest<'a> {
        let Self { epoch: Epoch { number: epoch, server, .. }, token, fence } = self;
        PushRequest { epoch, server, token, fence, from: range.from(), to: range.to(), numbers }
    }
}
