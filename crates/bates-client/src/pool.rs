//! A pool takes from memory first, then from Redis, then from Bates, then from Redis once more.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::bates_source::BatesSource;
use crate::error::{Error, OpenError, PopError};
use crate::redis_list::RedisList;
use crate::stock::{Fetch, Fetched, Hand, Stock, Turn};

/// The wait for Redis when Bates cannot be asked: longer than connecting and attaching take.
const LAST_RESORT: Duration = Duration::from_secs(5);
/// The wait for Bates alone, before Redis is asked once more.
const SLOW: Duration = Duration::from_secs(1);
/// Max numbers that one script pops: Redis serves no other client meanwhile.
const COUNT_MAX: usize = 10_000;
/// The most that a crash of the program loses. For Redis, one number costs as much as these.
const BATCH: usize = 100;
/// Redis answers in a fraction of a millisecond, and Bates in about one: a longer wait gains nothing.
const DEADLINE: Duration = Duration::from_millis(5);

/// Settings of a pool. Not `Debug`, because they hold secrets.
#[derive(Clone)]
pub struct Settings {
    /// Where Bates is, such as `http://127.0.0.1:8080`.
    pub bates: String,
    /// The secret of Bates, if it has one.
    pub secret: Option<String>,
    /// Where Redis is, such as `redis://127.0.0.1:6379`.
    pub redis: String,
    /// The series.
    pub series: String,
    /// The parameters of the scope.
    pub scope: BTreeMap<String, String>,
    /// The least that is popped at a time. Numbers not handed out are lost when the program ends.
    pub batch: usize,
    /// How long a call waits for Redis before it asks Bates.
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
/// It fails only if neither Bates nor a Redis with the list that Bates filled gives numbers. Dropping the last clone
/// loses the numbers that were popped and not handed out, at most one batch.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    stock: Arc<Stock>,
    tap: Mutex<RedisList>,
    bates: BatesSource,
    batch: usize,
    deadline: Duration,
}

impl Pool {
    /// Opens a pool. The first call connects.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        let (batch, deadline) = (settings.batch.clamp(1, COUNT_MAX), settings.deadline);
        let tap = Mutex::new(RedisList::new(settings)?);
        let bates = BatesSource::new(settings)?;
        Ok(Self(Arc::new(Shared { stock: Arc::default(), tap, bates, batch, deadline })))
    }

    /// Connects to Redis and learns the epoch of its list, within seconds, so that the first call need not.
    pub async fn attach(&self) {
        let mut ended = self.0.stock.watched();
        if let Turn::Fetch(fetch) = self.0.stock.turn(Instant::now(), true) {
            tokio::spawn(self.clone().fetched(fetch, 0));
        }
        let _ = timeout_at(Instant::now() + LAST_RESORT, ended.changed()).await;
    }

    /// Takes numbers; fewer than asked for where the scope ends. Needs a Tokio runtime.
    ///
    /// A dropped call loses numbers on their way from Bates. A forked process gets [`PopError::Forked`] and must open its
    /// own pool.
    pub async fn pop(&self, count: usize) -> Result<Vec<String>, PopError> {
        let popped = self.0.stock.process.unless_forked(self.pop_here(count)).await;
        popped.unwrap_or(Err(PopError::Forked))
    }

    async fn pop_here(&self, count: usize) -> Result<Vec<String>, PopError> {
        let mut hand = Hand::new(&self.0.stock, count);
        hand.fill();
        self.take_of_redis(&mut hand, false).await;
        let mut asking = pin!(self.0.bates.take(hand.missing()));
        let (numbers, error) = match timeout(SLOW, &mut asking).await {
            Ok(answer) => answer,
            Err(_) => {
                self.take_of_redis(&mut hand, true).await;
                if hand.missing() == 0 {
                    return Ok(hand.take());
                }
                asking.await
            }
        };
        hand.add(numbers);
        let Some(error) = error else { return Ok(hand.take()) };
        // Invariant: no call fails because one of the two was late, so Redis gets the long wait before an error.
        self.take_of_redis(&mut hand, true).await;
        if hand.missing() == 0 || (matches!(error, Error::Exhausted { .. }) && !hand.is_empty()) {
            return Ok(hand.take());
        }
        let redis = self.0.stock.why();
        Err(match error {
            Error::Exhausted { detail, .. } => PopError::Exhausted { detail, redis },
            Error::Refused { code, detail, status: ..500, .. } => PopError::Refused { code, detail, redis },
            error => PopError::Away { redis, bates: error.to_string().into() },
        })
    }

    /// Drains the numbers that were popped and not handed out, so that a program that ends loses none.
    pub fn rest(&self) -> Vec<String> {
        self.0.stock.rest()
    }

    /// Why Redis gave nothing when it was last asked, as a text for people.
    pub fn trouble(&self) -> Option<Box<str>> {
        self.0.stock.trouble()
    }

    /// Until the hand is full, or Redis is away, late or empty.
    async fn take_of_redis(&self, hand: &mut Hand<'_>, is_last_resort: bool) {
        let Shared { stock, batch, deadline, .. } = &*self.0;
        let wait = if is_last_resort { LAST_RESORT } else { *deadline };
        let (mut until, mut in_vain) = (Instant::now() + wait, 0);
        while hand.missing() > 0 {
            // Before the turn, so that no end is missed.
            let mut ended = stock.watched();
            let is_own = match stock.turn(Instant::now(), is_last_resort) {
                Turn::Fetch(fetch) => {
                    let count = hand.missing().clamp(*batch, COUNT_MAX);
                    tokio::spawn(self.clone().fetched(fetch, count));
                    true
                }
                Turn::Probe(fetch) => {
                    tokio::spawn(self.clone().fetched(fetch, *batch));
                    return;
                }
                Turn::Wait => false,
                Turn::Leave => return,
            };
            if timeout_at(until, ended.changed()).await.is_err() {
                // Other calls do not wait for it, either, until it has answered.
                stock.is_late(Instant::now());
                hand.fill();
                return;
            }
            if hand.fill() {
                (until, in_vain) = (Instant::now() + wait, 0);
                continue;
            }
            in_vain += 1;
            // Another call's fetch may have had a shorter deadline; the next one has not.
            if is_last_resort && (is_own || in_vain > 1) {
                return;
            }
        }
    }

    /// Runs as a task, so that popped numbers reach the stock even if the call is gone.
    async fn fetched(self, fetch: Fetch, count: usize) {
        let outcome = self.0.tap.lock().await.pop_many(&self.0.bates, count).await;
        fetch.end(outcome.map(|numbers| match count {
            0 => Fetched::Connection,
            _ => Fetched::Numbers(numbers),
        }));
    }
}
