//! Fills one pool under its lock: checks the epoch, takes grants from the store, and pushes them chunk by chunk.

use std::time::Duration;

use super::{
    FillError, FillOutcome, FillResult, ListRefusal, ListStatus, PoolFuture, PoolSet, PoolSettlement,
    PushRequest, RenewRequest, ServerIdentity, ServerStatus,
};
use crate::audit::{Actor, AuditRecord, Channel};
use crate::ledger::{Grant, GrantError, GrantPurpose};
use crate::machine::Numbers;
use crate::range::PositionRange;
use crate::runtime::Runtime;
use crate::series::{ListValue, OpenScope};
use crate::store::{MeasuredStore, Store};

/// How long a lock lasts unless it is extended.
const LOCK_TTL: Duration = Duration::from_secs(10);

/// Max positions of one grant. A crash loses at most this many for each pool that is being filled.
const GRANT_MAX: u64 = 1_000_000;

/// Positions rendered and pushed together: they block Redis for about two milliseconds.
const CHUNK: u64 = 20_000;

/// How often a chunk is sent if its answer is lost.
const SENDS_MAX: u32 = 3;

pub(crate) struct PoolFill<'a, S> {
    pub(crate) store: &'a MeasuredStore<S>,
    pub(crate) pools: &'a PoolSet,
    pub(crate) runtime: &'a dyn Runtime,
    pub(crate) open: OpenScope<'a>,
    pub(crate) key: Box<str>,
}

#[derive(Clone, Copy)]
struct Epoch<'s> {
    number: u64,
    server: &'s ServerIdentity,
    /// Whether this filling began it.
    is_new: bool,
}

/// Called with the count of numbers pushed so far.
pub(crate) type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// A lock that is held, and when it was taken or last extended.
struct ListLock {
    token: String,
    since: Duration,
}

impl<S: Store> PoolFill<'_, S> {
    /// Renews the pool if its server lost it. With `progress`, also fills it if it is low.
    pub(crate) async fn run(&self, progress: Option<Progress<'_>>) -> FillResult {
        let (token, since) = (self.runtime.new_id().to_string(), self.runtime.elapsed());
        let locked = self.pools.server.lock(&self.key, &token, LOCK_TTL).await;
        if !locked.map_err(FillError::Server)? {
            return Ok(FillOutcome::Skipped);
        }
        let mut lock = ListLock { token, since };
        let filled = self.fill(&mut lock, progress).await;
        // If this fails, the lock expires.
        let _ = self.pools.server.unlock(&self.key, &lock.token).await;
        filled
    }

    async fn fill(&self, lock: &mut ListLock, progress: Option<Progress<'_>>) -> FillResult {
        // Read under the lock, because another filler may have filled the pool just before.
        let status = self.pools.server.status(std::slice::from_ref(&self.key)).await;
        let ServerStatus { server, lists } = status.map_err(FillError::Server)?;
        let list = lists.into_iter().next().unwrap_or_default();
        let epoch = self.current_or_new_epoch(&server, &list).await?;
        let level = if epoch.is_new { 0 } else { list.level };
        let wanted = progress.map_or(0, |_| self.pools.settings.refill_count(level));
        if !epoch.is_new && wanted > 0 {
            let (epoch, popped_to) = (epoch.number, self.popped_to(&list));
            self.settle(PoolSettlement { epoch, popped_to, ..PoolSettlement::default() }).await?;
        }
        let mut pushed = 0;
        while pushed < wanted {
            let (scope_id, count) = (self.open.scope_id.clone(), (wanted - pushed).min(GRANT_MAX));
            let request = self.open.entry.series.grant_request(scope_id, count, GrantPurpose::Pool);
            let grant = match self.store.grant(request).await {
                // The pool already holds the last numbers of the scope.
                Err(GrantError::Exhausted { .. }) if pushed > 0 => break,
                grant => grant?,
            };
            let before = pushed;
            let mut count_pushed = |count| {
                pushed += count;
                self.pools.count_pushed(count);
                if let Some(progress) = progress {
                    progress(pushed);
                }
            };
            self.push(grant, epoch, lock, &mut count_pushed).await?;
            if pushed == before {
                // The rules rejected the whole grant: let other tasks run.
                tokio::task::yield_now().await;
            }
        }
        // The first epoch of a pool is 1. Beginning it is not a renewal.
        Ok(FillOutcome::Done { pushed, renewed: epoch.is_new && epoch.number > 1 })
    }

    /// The epoch in the store, if the list has it and is on the server where it began; otherwise a new epoch.
    async fn current_or_new_epoch<'s>(
        &self,
        server: &'s ServerIdentity,
        list: &ListStatus,
    ) -> Result<Epoch<'s>, FillError> {
        if list.is_of_other_store {
            return Err(FillError::OtherStore(self.key.clone()));
        }
        let pool = self.store.pool(self.open.scope_id.clone(), None).await?;
        if list.is_not_a_list || pool.epoch == 0 && list.epoch.is_none() && list.level > 0 {
            return Err(FillError::KeyTaken(self.key.clone()));
        }
        if let Some(epoch) = list.epoch.filter(|epoch| *epoch > pool.epoch) {
            return Err(FillError::UnknownEpoch { key: self.key.clone(), epoch });
        }
        self.check_cursor(list).await?;
        if pool.server.as_ref() == Some(server) && list.epoch == Some(pool.epoch) {
            return Ok(Epoch { number: pool.epoch, server, is_new: false });
        }
        let renewal = RenewRequest { expected_epoch: pool.epoch, server: server.clone() };
        // Invariant: only the filler that raised the epoch in the store writes a marker with it.
        let Some(pool) = self.store.renew_pool(self.open.scope_id.clone(), renewal).await? else {
            return Err(FillError::Refused(ListRefusal::Epoch(list.epoch)));
        };
        let renewed = self.pools.server.renew(&self.key, pool.epoch, server).await;
        renewed.map_err(FillError::Server)?.map_err(FillError::Refused)?;
        Ok(Epoch { number: pool.epoch, server, is_new: true })
    }

    /// Every pushed position was granted before. If the cursor is below one, the store was restored from an older state.
    async fn check_cursor(&self, list: &ListStatus) -> Result<(), FillError> {
        let Some(pushed_to) = list.pushed_to.filter(|to| *to > 0) else { return Ok(()) };
        let next = self.store.cursor(self.open.scope_id.clone()).await?.map_or(0, |cursor| cursor.next);
        let key = self.key.clone();
        if next < pushed_to { Err(FillError::StoreRewound { key, pushed_to, next }) } else { Ok(()) }
    }

    /// Pushes a grant, and settles it in the store.
    async fn push(
        &self,
        grant: Grant,
        epoch: Epoch<'_>,
        lock: &mut ListLock,
        count_pushed: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), FillError> {
        let mut sent_to = grant.range.from();
        let outcome = self.push_chunks(&grant, epoch, lock, &mut sent_to, count_pushed).await;
        // A chunk of unknown outcome counts as pushed: a program may have taken numbers from it.
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
        count_pushed: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), FillError> {
        let token = lock.token.clone();
        let fence = PushFence { epoch, token: &token, version: grant.version };
        let (mut chunk, mut rest) = grant.range.split(CHUNK);
        let (mut packed, mut numbers) = self.pack(chunk, fence).await;
        while let Some(range) = chunk {
            self.extend_lock(lock).await?;
            self.record(&numbers, range).await?;
            let (next, after) = rest.map_or((None, None), |rest| rest.split(CHUNK));
            let push = fence.push(range, &numbers);
            // The next chunk is rendered and packed while this one is sent.
            let sending = self.send(push, packed, sent_to);
            let (sent, next_packed) = tokio::join!(biased; sending, self.pack(next, fence));
            sent?;
            count_pushed(numbers.len() as u64);
            (chunk, rest) = (next, after);
            (packed, numbers) = next_packed;
        }
        Ok(())
    }

    async fn pack(&self, chunk: Option<PositionRange>, fence: PushFence<'_>) -> PackedChunk<'_> {
        let Some(range) = chunk else { return (None, Numbers::default()) };
        let (scope, value) = (self.open.scope.clone(), self.pools.settings.value);
        let rendered = self.runtime.run_blocking(move || Numbers::rendered(&scope, range, value)).await;
        let numbers = rendered.expect("rendering does not panic");
        let push = || self.pools.server.push(&self.key, fence.push(range, &numbers));
        ((!numbers.is_empty()).then(push), numbers)
    }

    /// Writes the audit record of a chunk before it is pushed: after that, any program may take its numbers.
    async fn record(&self, numbers: &Numbers, range: PositionRange) -> Result<(), FillError> {
        if !self.open.entry.spec.audit.is_on() {
            return Ok(());
        }
        let caller = format!("pool {}", self.key);
        let stamp = Actor { caller: &caller, channel: Channel::Pool }.stamp(self.runtime.now());
        let (id, all) = (self.runtime.new_id(), 0..numbers.len());
        if let Some(record) = AuditRecord::of_numbers(id, &self.open.scope_id, range, numbers, all, &stamp) {
            self.store.record(vec![record]).await?;
        }
        Ok(())
    }

    /// Sends a packed chunk, again if its answer is lost. Moves `sent_to` past the chunk if it was, or may have been, pushed.
    async fn send(
        &self,
        push: PushRequest<'_>,
        mut packed: Option<PushFuture<'_>>,
        sent_to: &mut u64,
    ) -> Result<(), FillError> {
        let mut sends = 1;
        while let Some(sending) = packed {
            match sending.await {
                Ok(Err(refusal)) => {
                    // A chunk refused on the first send was certainly not pushed.
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
            packed = Some(self.pools.server.push(&self.key, push));
        }
        *sent_to = push.to;
        Ok(())
    }

    /// Extends the lock once a third of its time has passed, by the monotonic clock.
    async fn extend_lock(&self, lock: &mut ListLock) -> Result<(), FillError> {
        let now = self.runtime.elapsed();
        if now.saturating_sub(lock.since) < LOCK_TTL / 3 {
            return Ok(());
        }
        lock.since = now;
        let extended = self.pools.server.extend(&self.key, &lock.token, LOCK_TTL).await;
        let is_ours = extended.map_err(FillError::Server)?;
        is_ours.then_some(()).ok_or(FillError::Refused(ListRefusal::Fenced))
    }

    /// The position below which all pushed numbers were taken, as the first element of the list tells; `None` if it cannot.
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

/// The numbers of a chunk, and the push of them; `None` if the rules reject the whole chunk.
type PackedChunk<'a> = (Option<PushFuture<'a>>, Numbers);

/// The server compares these before it accepts a chunk of a grant.
#[derive(Clone, Copy)]
struct PushFence<'a> {
    epoch: Epoch<'a>,
    token: &'a str,
    version: u64,
}

impl<'a> PushFence<'a> {
    fn push(self, range: PositionRange, numbers: &'a Numbers) -> PushRequest<'a> {
        let Self { epoch: Epoch { number: epoch, server, .. }, token, version: fence } = self;
        PushRequest { epoch, server, token, fence, from: range.from(), to: range.to(), numbers }
    }
}
