//! A pool as a program takes from it: first what is at hand, then Redis, then Bates, then Redis once more.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::bates::Bates;
use crate::error::{Error, OpenError, PopError};
use crate::stock::{Fetch, Fetched, Hand, Stock, Turn};
use crate::tap::Tap;

/// How long a call waits for Redis where Bates cannot be asked: longer than a connection takes to be made and attached.
const LAST_RESORT: Duration = Duration::from_secs(5);

/// How long a call waits for Bates alone, before it turns to Redis once more.
const SLOW: Duration = Duration::from_secs(1);

/// Numbers that one script pops: Redis serves nobody else meanwhile.
const COUNT_MAX: usize = 10_000;

/// A crash of the program loses so many numbers at the most; a call of Redis costs as much for one number as for these.
const BATCH: usize = 100;

/// Redis answers in a fraction of a millisecond, and Bates in about one: who waits longer for Redis gains nothing.
const DEADLINE: Duration = Duration::from_millis(5);

/// Which pool is taken from, and how. It cannot be shown, because it holds secrets.
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
    /// How many numbers are popped at a time, at least. Those not handed out are lost when the program ends.
    pub batch: usize,
    /// How long a call waits for Redis before it asks Bates.
    pub deadline: Duration,
    /// A bug that tests must find: a list is taken from whatever server it is on.
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

/// A pool that is taken from. Clones share the connection and what is at hand.
///
/// It fails only if neither of the two gives numbers: Bates, or a Redis whose list is known to be the one that Bates
/// filled. What it has popped and not handed out is lost when the last clone is dropped, at most one batch.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    stock: Arc<Stock>,
    /// Held by the one that fetches.
    tap: Mutex<Tap>,
    bates: Bates,
    batch: usize,
    deadline: Duration,
}

impl Pool {
    /// A pool. The first call connects.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        let (batch, deadline) = (settings.batch.clamp(1, COUNT_MAX), settings.deadline);
        let tap = Mutex::new(Tap::new(settings)?);
        let bates = Bates::new(settings)?;
        Ok(Self(Arc::new(Shared { stock: Arc::default(), tap, bates, batch, deadline })))
    }

    /// Connects to Redis and learns the epoch of its list, if it can within seconds, so that the first call need not.
    pub async fn attach(&self) {
        let mut ended = self.0.stock.watched();
        if let Turn::Fetch(fetch) = self.0.stock.turn(Instant::now(), true) {
            tokio::spawn(self.clone().fetched(fetch, 0));
        }
        let _ = timeout_at(Instant::now() + LAST_RESORT, ended.changed()).await;
    }

    /// Takes numbers, each of which nobody else was given; fewer than asked for where the scope ends.
    ///
    /// Must be called in a Tokio runtime. A call that is dropped loses what was on its way from Bates to it.
    ///
    /// A process that is forked from this one gets [`PopError::Forked`], and must open a pool of its own.
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
        // Invariant: no call fails because one of the two was late. Redis has not been asked, or not long enough.
        self.take_of_redis(&mut hand, true).await;
        if hand.missing() == 0 || (matches!(error, Error::Exhausted { .. }) && !hand.is_empty()) {
            return Ok(hand.take());
        }
        Err(PopError::of(error, self.0.stock.why()))
    }

    /// What was popped and not handed out: for a program that ends, so that nothing is lost.
    pub fn rest(&self) -> Vec<String> {
        self.0.stock.rest()
    }

    /// What came of asking Redis last, if it gave nothing: for people.
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
                // Nobody else waits for it, either, until it has answered.
                stock.is_late(Instant::now());
                hand.fill();
                return;
            }
            if hand.fill() {
                (until, in_vain) = (Instant::now() + wait, 0);
                continue;
            }
            in_vain += 1;
            // Whoever was under way may have begun with less patience; the next one has not.
            if is_last_resort && (is_own || in_vain > 1) {
                return;
            }
        }
    }

    /// In a task of its own: what was popped is at hand, even if the call that wanted it is gone.
    async fn fetched(self, fetch: Fetch, count: usize) {
        let outcome = self.0.tap.lock().await.draw(&self.0.bates, count).await;
        fetch.end(outcome.map(|numbers| match count {
            0 => Fetched::Connection,
            _ => Fetched::Numbers(numbers),
        }));
    }
}
