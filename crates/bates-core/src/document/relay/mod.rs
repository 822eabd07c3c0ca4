//! The relay: takes documents of one series out of the outbox and to their sink, at least once.
//!
//! What could go wrong, and why it does not: a relay that crashes, or sleeps through its claim, leaves its documents
//! to whoever claims them next, and its late verdict is refused. A document that fails waits longer each time and is
//! dead in the end; others are not held up, because those with the fewest tries are claimed first. A sink that takes
//! nothing is left alone and tried with one document now and then. One that is too slow for a batch within its claim
//! gets smaller ones, and what it has taken by then counts; one that panics has failed like any other: a relay never
//! ends by itself.

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

const FLOOD: usize = 500;

/// How long a claim lasts. A sink must answer earlier by itself, or nothing is known of what it was doing.
pub const CLAIM_LASTS: Duration = Duration::from_secs(30);

/// How much longer the store keeps a claim, so that no other node takes it before its outcome is written.
const SETTLING: Duration = Duration::from_secs(2);

/// How long a lane lets a flood go first; then it has a turn all the same.
const YIELD: Duration = Duration::from_secs(2);

/// How documents are delivered.
#[derive(Clone, Copy, Debug)]
pub struct RelaySettings {
    /// A document that failed so often is dead.
    pub tries_max: u32,
    /// How long a claim lasts; what takes longer may be delivered twice.
    pub claim_lasts: Duration,
    /// How long a batch that is under way may take once the relay is told to stop. After that its outcome is unknown.
    pub stop_lasts: Duration,
    /// Batches that are under way together.
    pub lanes: usize,
    /// How long nobody looks whether something is due that this node was not told of: written by another node, or
    /// failed before. Longer while others tell what they write.
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

/// Delivers the documents of one series.
pub struct Relay<S> {
    machine: Arc<Machine<S>>,
    entry: Arc<Entry>,
    sink: Box<dyn Sink>,
    settings: RelaySettings,
    breaker: Mutex<Breaker>,
    pace: Mutex<Pace>,
    poll: Mutex<Poll>,
    /// Who tries a sink that took nothing does so alone.
    probing: tokio::sync::Mutex<()>,
}

impl<S: Store> Relay<S> {
    /// A relay that has not begun.
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

    /// Delivers until it is told to stop; then what is under way is ended and settled.
    pub async fn run(self, stopped: watch::Receiver<bool>) {
        let relay = Arc::new(self);
        let lanes = (0..relay.settings.lanes.max(1)).map(|_| {
            let (relay, stopped) = (relay.clone(), stopped.clone());
            let runtime = relay.runtime().clone();
            runtime.spawn_for(async move { relay.lane(stopped).await })
        });
        for lane in lanes.collect::<Vec<_>>() {
            // A lane that panicked has said so; the others go on.
            let _ = lane.await;
        }
    }

    async fn lane(&self, mut stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            // Callers wait for numbers, and nobody waits for a delivery: in a flood numbers go first.
            if self.machine.calls_under_way() > FLOOD {
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
            // A store that fails is asked again after the next pause.
            let _ = self.round(1, stopped).await;
        }
    }

    /// Claims, delivers, settles. Answers whether there was anything to deliver.
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

    /// What takes longer than the claim was not answered: another node may be at it by then. Nor is what takes longer
    /// than a stop waits. What the sink has told of before counts.
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

    /// Ends when a stop was asked for and has waited long enough. A sender that is gone asked for one, too.
    async fn stop_is_over(&self, mut stopped: watch::Receiver<bool>) {
        let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
        self.runtime().sleep(self.settings.stop_lasts).await;
    }

    /// Whether the sink ended the batch; if not, it panicked, which has been said.
    async fn ended(&self, claimed: &[Claimed], outcomes: &Outcomes) -> bool {
        let mut delivering = Box::pin(async { self.sink.deliver_each(claimed, outcomes).await });
        // What it was doing is dropped, and a sink has nothing that half a delivery could break for the next one.
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
