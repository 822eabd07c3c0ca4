//! A pool: takes numbers from memory, then from Redis, then from Bates, and then once more from Redis.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::bates_source::BatesSource;
use crate::error::{Error, OpenError, PopError};
use crate::redis_list::RedisList;
use crate::stock::{Fetch, FetchResult, PendingPop, Stock, Turn};

/// How long a call waits for Redis if Bates is unavailable. Longer than connecting and attaching take.
const LAST_RESORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for Bates alone, before it also tries Redis once more.
const BATES_TIMEOUT: Duration = Duration::from_secs(1);
/// Max numbers that one script pops: Redis serves no other client meanwhile.
const COUNT_MAX: usize = 10_000;
/// Default batch: a crash of the program loses at most this many numbers. For Redis, one number costs as much as a batch.
const BATCH: usize = 100;
/// Default deadline. Redis answers in a fraction of a millisecond, and Bates in about one: a longer wait gains nothing.
const DEADLINE: Duration = Duration::from_millis(5);

/// Settings of a pool. Not `Debug`, because they hold secrets.
#[derive(Clone)]
pub struct Settings {
    /// The address of Bates, such as `http://127.0.0.1:8080`.
    pub bates: String,
    /// The secret of Bates, if it has one.
    pub secret: Option<String>,
    /// The address of Redis, such as `redis://127.0.0.1:6379`.
    pub redis: String,
    /// The series.
    pub series: String,
    /// The parameters of the scope.
    pub scope: BTreeMap<String, String>,
    /// The least count of numbers to pop at once. Those not handed out are lost when the program ends.
    pub batch: usize,
    /// How long a call waits for Redis before it calls Bates.
    pub deadline: Duration,
    /// A bug that tests must find: the server of a list is not compared.
    #[cfg(feature = "planted-bugs")]
    pub ignores_server: bool,
}

impl Settings {
    /// The pool of a series without parameters, with a batch of 100 and a deadline of 5 ms.
    pub fn new(bates: impl Into<String>, redis: impl Into<String>, series: impl Into<String>) -> Self {
        Self {
            bates: bates.into(),
            secret: None,
            redis: redis.into(),
            series: series.into(),
            scope: BTreeMap::new(),
            batch: BATCH,
            deadline: DEADLINE,
            #[cfg(feature = "planted-bugs")]
            ignores_server: false,
        }
    }
}

/// A shared pool. Clones share the connection and the numbers in memory.
///
/// A call fails only if neither Bates nor a list in Redis that Bates filled gives numbers. Dropping the last clone loses
/// the numbers that were popped and not handed out, at most one batch.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    stock: Arc<Stock>,
    list: Mutex<RedisList>,
    bates: BatesSource,
    batch: usize,
    deadline: Duration,
}

impl Pool {
    /// Opens a pool. The first call connects.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        let (batch, deadline) = (settings.batch.clamp(1, COUNT_MAX), settings.deadline);
        let list = Mutex::new(RedisList::new(settings)?);
        let bates = BatesSource::new(settings)?;
        Ok(Self(Arc::new(Shared { stock: Arc::default(), list, bates, batch, deadline })))
    }

    /// Connects to Redis and reads the epoch of its list, within seconds, so that the first call need not.
    pub async fn attach(&self) {
        let mut ended = self.0.stock.fetch_ended();
        if let Turn::Fetch(fetch) = self.0.stock.turn(Instant::now(), true) {
            tokio::spawn(self.clone().fetch(fetch, 0));
        }
        let _ = timeout_at(Instant::now() + LAST_RESORT_TIMEOUT, ended.changed()).await;
    }

    /// Takes numbers; fewer than `count` where the scope ends. Needs a Tokio runtime.
    ///
    /// A dropped call loses the numbers that Bates is sending. A forked process gets [`PopError::Forked`] and must open its
    /// own pool.
    pub async fn pop(&self, count: usize) -> Result<Vec<String>, PopError> {
        let popped = self.0.stock.process.unless_forked(self.pop_here(count)).await;
        popped.unwrap_or(Err(PopError::Forked))
    }

    async fn pop_here(&self, count: usize) -> Result<Vec<String>, PopError> {
        let mut pending = PendingPop::new(&self.0.stock, count);
        pending.take_from_stock();
        self.take_from_redis(&mut pending, false).await;
        let mut request = pin!(self.0.bates.take(pending.missing()));
        let (numbers, error) = match timeout(BATES_TIMEOUT, &mut request).await {
            Ok(answer) => answer,
            Err(_) => {
                self.take_from_redis(&mut pending, true).await;
                if pending.missing() == 0 {
                    return Ok(pending.finish());
                }
                request.await
            }
        };
        pending.add(numbers);
        let Some(error) = error else { return Ok(pending.finish()) };
        // Invariant: no call fails only because Redis was slow, so it waits longer for Redis before it fails.
        self.take_from_redis(&mut pending, true).await;
        if pending.missing() == 0 || (matches!(error, Error::Exhausted { .. }) && !pending.is_empty()) {
            return Ok(pending.finish());
        }
        let untried = || "not tried, or other calls took its numbers".into();
        let redis = self.0.stock.trouble().unwrap_or_else(untried);
        Err(match error {
            Error::Exhausted { detail, .. } => PopError::Exhausted { detail, redis },
            Error::Refused { code, detail, status: ..500, .. } => PopError::Refused { code, detail, redis },
            error => PopError::Away { redis, bates: error.to_string().into() },
        })
    }

    /// Takes out all numbers that were popped and not handed out, so that a program that ends loses none.
    pub fn rest(&self) -> Vec<String> {
        self.0.stock.rest()
    }

    /// Why Redis gave no numbers at the last attempt, as a text for people.
    pub fn trouble(&self) -> Option<Box<str>> {
        self.0.stock.trouble()
    }

    /// Returns when the call has all its numbers, or Redis is unreachable, late or empty.
    async fn take_from_redis(&self, pending: &mut PendingPop<'_>, is_last_resort: bool) {
        let Shared { stock, batch, deadline, .. } = &*self.0;
        let wait = if is_last_resort { LAST_RESORT_TIMEOUT } else { *deadline };
        let (mut until, mut failures) = (Instant::now() + wait, 0);
        while pending.missing() > 0 {
            // Subscribed before the turn, so that no end of a fetch is missed.
            let mut ended = stock.fetch_ended();
            let is_own = match stock.turn(Instant::now(), is_last_resort) {
                Turn::Fetch(fetch) => {
                    let count = pending.missing().clamp(*batch, COUNT_MAX);
                    tokio::spawn(self.clone().fetch(fetch, count));
                    true
                }
                Turn::Probe(fetch) => {
                    tokio::spawn(self.clone().fetch(fetch, *batch));
                    return;
                }
                Turn::Wait => false,
                Turn::Skip => return,
            };
            if timeout_at(until, ended.changed()).await.is_err() {
                // Until Redis has answered, other calls do not wait for it either.
                stock.mark_late(Instant::now());
                pending.take_from_stock();
                return;
            }
            if pending.take_from_stock() {
                (until, failures) = (Instant::now() + wait, 0);
                continue;
            }
            failures += 1;
            // The failed fetch may be that of another call, with a shorter deadline.
            if is_last_resort && (is_own || failures > 1) {
                return;
            }
        }
    }

    /// Runs as a task, so that popped numbers reach the stock even if the call is dropped.
    async fn fetch(self, fetch: Fetch, count: usize) {
        let outcome = self.0.list.lock().await.pop_many(&self.0.bates, count).await;
        fetch.end(outcome.map(|numbers| match count {
            0 => FetchResult::Attached,
            _ => FetchResult::Numbers(numbers),
        }));
    }
}
