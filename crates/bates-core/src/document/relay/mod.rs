//! The relay: delivers documents of one series from the outbox to their sink, at least once.
//!
//! When a relay crashes, or sleeps through its claim, another node claims its documents, and its late verdict is refused.
//! A document that fails waits longer each time and is dead in the end; it holds no others up, because those with the
//! fewest tries are claimed first. A relay never ends by itself: a panic of the sink is a failure like any other.

mod pace;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::document::{Claim, Claimed, Outcomes, Settlement, Sink, Undelivered, Verdict};
use crate::machine::Machine;
use crate::runtime::Runtime;
use crate::series::Entry;
use crate::store::{Store, StoreError};
use pace::{Breaker, JITTER, Pace, Poll};

const BYTES_AT_ONCE: usize = 8 * 1024 * 1024;

/// With more calls for numbers under way than this, deliveries wait.
const FLOOD: usize = 500;

/// How long a claim lasts. A sink must answer earlier, or the outcome is unknown.
pub const CLAIM_LASTS: Duration = Duration::from_secs(30);

/// How much longer the store keeps a claim, so that its outcome is written before another node takes it.
const SETTLING: Duration = Duration::from_secs(2);

/// How long a lane waits for a flood to pass before it takes its turn.
const YIELD: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct RelaySettings {
    /// A document that failed this often is dead.
    pub tries_max: u32,
    /// A delivery that takes longer may happen twice.
    pub claim_lasts: Duration,
    /// How long a batch may take after a stop was asked for. After that its outcome is unknown.
    pub stop_lasts: Duration,
    pub lanes: usize,
    /// How often to look for documents that other nodes wrote or that failed before. Less often while notices arrive.
    pub poll: Duration,
}

impl Default for RelaySettings {
    fn default() -> Self {
        Self {
            tries_max: 5,
            claim_lasts: CLAIM_LASTS,
            stop_lasts: Duration::from_secs(5),
            lanes: 2,
            poll: Duration::from_secs(1),
        }
    }
}

pub struct Relay<S> {
    machine: Arc<Machine<S>>,
    entry: Arc<Entry>,
    sink: Box<dyn Sink>,
    settings: RelaySettings,
    breaker: Mutex<Breaker>,
    pace: Mutex<Pace>,
    poll: Mutex<Poll>,
    /// Held by the one lane that probes a sink which took nothing.
    probing: tokio::sync::Mutex<()>,
}

impl<S: Store> Relay<S> {
    pub fn new(
        machine: Arc<Machine<S>>,
        entry: Arc<Entry>,
        sink: Box<dyn Sink>,
        settings: RelaySettings,
    ) -> Self {
        let poll = Mutex::new(Poll::each(settings.poll));
        let (breaker, pace, probing) = (Mutex::default(), Mutex::default(), tokio::sync::Mutex::default());
        Self { machine, entry, sink, settings, breaker, pace, poll, probing }
    }

    /// Delivers until a stop is asked for; then ends and settles the batches under way.
    pub async fn run(self, stopped: watch::Receiver<bool>) {
        let relay = Arc::new(self);
        let lanes = (0..relay.settings.lanes.max(1)).map(|_| {
            let (relay, stopped) = (relay.clone(), stopped.clone());
            let runtime = relay.runtime().clone();
            runtime.spawn_for(async move { relay.lane(stopped).await })
        });
        for lane in lanes.collect::<Vec<_>>() {
            // The panic hook has reported a panic; the other lanes go on.
            let _ = lane.await;
        }
    }

    async fn lane(&self, mut stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            // Callers wait for numbers, not for deliveries: in a flood numbers go first.
            if self.machine.dispenser.calls_under_way() > FLOOD {
                self.runtime().sleep(YIELD).await;
            }
            let pause = self.breaker.lock().pause();
            let is_done = match pause {
                None => {
                    let limit = self.pace.lock().limit(self.sink.batch_max());
                    self.round(limit, stopped.clone()).await.unwrap_or(false)
                }
                Some(pause) => {
                    tokio::select! {
                        biased;
                        () = self.probe(pause, stopped.clone()) => true,
                        _ = stopped.changed() => return,
                    }
                }
            };
            if !is_done {
                let store = self.machine.store();
                let pause = self.poll.lock().pause(store.is_told(), self.runtime().elapsed());
                tokio::select! {
                    biased;
                    () = self.entry.has_documents().notified() => {}
                    () = store.woken(self.entry.series().name()) => {}
                    () = self.runtime().sleep(pause) => {}
                    _ = stopped.changed() => return,
                }
            }
        }
    }

    fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.machine.runtime
    }

    async fn probe(&self, pause: Duration, stopped: watch::Receiver<bool>) {
        let _alone = self.probing.lock().await;
        if self.breaker.lock().pause().is_some() {
            self.runtime().sleep(self.runtime().jittered(pause, JITTER)).await;
            // After an error of the store, the next pause and probe follow.
            let _ = self.round(1, stopped).await;
        }
    }

    /// Answers whether there was anything to deliver.
    async fn round(&self, limit: usize, stopped: watch::Receiver<bool>) -> Result<bool, StoreError> {
        let lasts = self.settings.claim_lasts + SETTLING;
        let claim = Claim { series: self.entry.series().name().clone(), limit, bytes: BYTES_AT_ONCE, lasts };
        let claimed = self.machine.store().claim(claim).await?;
        if claimed.is_empty() {
            return Ok(false);
        }
        let outcomes = self.deliver(&claimed, stopped).await;
        self.breaker.lock().saw(&outcomes);
        let settled = claimed.iter().zip(outcomes).map(|(claimed, outcome)| Settlement {
            event: claimed.event,
            attempt: claimed.attempt,
            verdict: self.verdict(claimed.attempt, outcome),
        });
        let settled: Vec<_> = settled.collect();
        self.poll.lock().saw(&settled, self.runtime().elapsed());
        self.machine.store().settle(settled).await?;
        Ok(true)
    }

    /// A delivery that takes longer than its claim, or than a stop waits, counts as unanswered: another node may have
    /// claimed it by then. Outcomes that the sink reported before count.
    async fn deliver(
        &self,
        claimed: &[Claimed],
        stopped: watch::Receiver<bool>,
    ) -> Vec<Result<(), Undelivered>> {
        let outcomes = Outcomes::unknown(claimed.len());
        let ended = tokio::select! {
            biased;
            ended = self.ended(claimed, &outcomes) => Some(ended),
            () = self.runtime().sleep(self.settings.claim_lasts) => None,
            () = self.stop_is_over(stopped) => None,
        };
        self.pace.lock().saw(claimed.len(), ended == Some(true));
        outcomes.known(match ended {
            Some(true) => "the sink ended and told nothing of it",
            Some(false) => "the sink panicked",
            None => "the sink did not answer within the time of its claim, or before the process stopped",
        })
    }

    /// Waits for a stop, then for `stop_lasts`. A dropped sender also means a stop.
    async fn stop_is_over(&self, mut stopped: watch::Receiver<bool>) {
        let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
        self.runtime().sleep(self.settings.stop_lasts).await;
    }

    /// Answers `false` if the sink panicked.
    async fn ended(&self, claimed: &[Claimed], outcomes: &Outcomes) -> bool {
        let mut delivering = Box::pin(async { self.sink.deliver_each(claimed, outcomes).await });
        // The delivery is dropped: a sink keeps no state that half a delivery could break for the next one.
        poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| delivering.as_mut().poll(context))) {
            Ok(poll) => poll.map(|()| true),
            Err(_) => task::Poll::Ready(false),
        })
        .await
    }

    fn verdict(&self, attempt: u32, outcome: Result<(), Undelivered>) -> Verdict {
        let Err(error) = outcome else { return Verdict::Delivered };
        let wait = Duration::from_secs(2_u64.saturating_pow(attempt.min(16)));
        let again = (attempt < self.settings.tries_max).then(|| self.runtime().jittered(wait, JITTER));
        let reason = error.to_string().into();
        match (error, again) {
            (Undelivered::Unanswered(_), again) => Verdict::Unanswered(again, reason),
            (_, Some(wait)) => Verdict::Again(wait, reason),
            (_, None) => Verdict::Dead(reason),
        }
    }
}
