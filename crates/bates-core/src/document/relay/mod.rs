//! The relay: delivers documents of one series from the outbox to their sink, at least once.
//!
//! When a relay crashes, or its claim expires, another node claims its documents, and the late verdict of the first relay
//! is refused. After each failure a document waits longer; after the last attempt it is dead. It delays no others,
//! because those with the fewest attempts are claimed first. A panic of the sink is a failure like any other.

mod pace;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::document::sink::DeliveryResult;
use crate::document::{ClaimRequest, Delivery, DeliveryError, DeliveryOutcomes, Settlement, Sink, Verdict};
use crate::machine::Machine;
use crate::runtime::Runtime;
use crate::series::SeriesEntry;
use crate::store::{Store, StoreResult};
use pace::{BatchSize, Breaker, JITTER, PollInterval};

const CLAIM_BYTES: usize = 8 * 1024 * 1024;

/// With more calls for numbers under way than this, the process is busy and deliveries pause.
const BUSY_CALLS: usize = 500;

/// How long a claim lasts. A sink must answer earlier, or the outcome is unknown.
pub const CLAIM_TTL: Duration = Duration::from_secs(30);

/// How much longer the claim lasts in the store, so that its outcome is written before another node claims the document.
const SETTLE_MARGIN: Duration = Duration::from_secs(2);

/// How long a lane pauses while the process is busy. Then it delivers even if the process is still busy.
const BUSY_PAUSE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct RelaySettings {
    /// A document that failed this often is dead.
    pub attempts_max: u32,
    /// A delivery that takes longer may happen twice.
    pub claim_ttl: Duration,
    /// How long a batch may take after a stop was requested. After that its outcome is unknown.
    pub stop_timeout: Duration,
    /// Tasks that each claim, deliver and settle one batch after another.
    pub lanes: usize,
    /// How often to poll for retries and for documents of other nodes. Less often while notices arrive.
    pub poll: Duration,
}

impl Default for RelaySettings {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            claim_ttl: CLAIM_TTL,
            stop_timeout: Duration::from_secs(5),
            lanes: 2,
            poll: Duration::from_secs(1),
        }
    }
}

pub struct Relay<S> {
    machine: Arc<Machine<S>>,
    entry: Arc<SeriesEntry>,
    sink: Box<dyn Sink>,
    settings: RelaySettings,
    breaker: Mutex<Breaker>,
    batch_size: Mutex<BatchSize>,
    poll: Mutex<PollInterval>,
    /// Held by the one lane that probes a sink that is down.
    probing: tokio::sync::Mutex<()>,
}

impl<S: Store> Relay<S> {
    pub fn new(
        machine: Arc<Machine<S>>,
        entry: Arc<SeriesEntry>,
        sink: Box<dyn Sink>,
        settings: RelaySettings,
    ) -> Self {
        let (breaker, batch_size) = (Mutex::default(), Mutex::default());
        let (poll, probing) = (Mutex::new(PollInterval::new(settings.poll)), tokio::sync::Mutex::default());
        Self { machine, entry, sink, settings, breaker, batch_size, poll, probing }
    }

    /// Delivers until a stop is requested; then finishes and settles the batches under way.
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
            // Callers wait for numbers, not for deliveries: under load, numbers go first.
            if self.machine.dispenser.calls_under_way() > BUSY_CALLS {
                self.runtime().sleep(BUSY_PAUSE).await;
            }
            let pause = self.breaker.lock().pause();
            let had_documents = if let Some(pause) = pause {
                tokio::select! {
                    biased;
                    () = self.probe(pause, stopped.clone()) => true,
                    _ = stopped.changed() => return,
                }
            } else {
                let limit = self.batch_size.lock().limit(self.sink.batch_max());
                self.deliver_batch(limit, stopped.clone()).await.unwrap_or(false)
            };
            if !had_documents {
                let store = self.machine.store();
                let pause = self.poll.lock().pause(store.receives_notices(), self.runtime().elapsed());
                // Until this node or another one has written a document, or it is time to poll.
                tokio::select! {
                    biased;
                    () = self.entry.document_notify.notified() => {}
                    () = store.document_notice(self.entry.series().name()) => {}
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
            // If the store fails, the next pause and probe follow.
            let _ = self.deliver_batch(1, stopped).await;
        }
    }

    /// Answers whether there was anything to deliver.
    async fn deliver_batch(&self, limit: usize, stopped: watch::Receiver<bool>) -> StoreResult<bool> {
        let (series, ttl) = (self.entry.series().name().clone(), self.settings.claim_ttl + SETTLE_MARGIN);
        let claim = ClaimRequest { series, limit, stop_at_bytes: CLAIM_BYTES, ttl };
        let claimed = self.machine.store().claim(claim).await?;
        if claimed.is_empty() {
            return Ok(false);
        }
        let outcomes = self.deliver(&claimed, stopped).await;
        self.breaker.lock().observe(&outcomes);
        let settlements = claimed.iter().zip(outcomes).map(|(claimed, outcome)| Settlement {
            document_id: claimed.document_id,
            attempt: claimed.attempt,
            verdict: self.verdict(claimed.attempt, outcome),
        });
        let settlements: Vec<_> = settlements.collect();
        self.poll.lock().observe(&settlements, self.runtime().elapsed());
        self.machine.store().settle_claims(settlements).await?;
        Ok(true)
    }

    /// A delivery that outlasts its claim or `stop_timeout` counts as unanswered: another node may have claimed the document
    /// by then. Outcomes that the sink reported earlier count.
    async fn deliver(&self, claimed: &[Delivery], stopped: watch::Receiver<bool>) -> Vec<DeliveryResult> {
        let outcomes = DeliveryOutcomes::unknown(claimed.len());
        let ended = tokio::select! {
            biased;
            ended = self.run_sink(claimed, &outcomes) => Some(ended),
            () = self.runtime().sleep(self.settings.claim_ttl) => None,
            () = self.stop_timed_out(stopped) => None,
        };
        self.batch_size.lock().observe(claimed.len(), ended == Some(true));
        outcomes.into_results(match ended {
            Some(true) => "the sink ended and reported no outcome",
            Some(false) => "the sink panicked",
            None => "the sink did not answer within the time of its claim, or before the process stopped",
        })
    }

    /// Waits for a stop, then for `stop_timeout`. A dropped sender also means a stop.
    async fn stop_timed_out(&self, mut stopped: watch::Receiver<bool>) {
        let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
        self.runtime().sleep(self.settings.stop_timeout).await;
    }

    /// Answers `false` if the sink panicked.
    async fn run_sink(&self, claimed: &[Delivery], outcomes: &DeliveryOutcomes) -> bool {
        let mut delivering = Box::pin(async { self.sink.deliver_each(claimed, outcomes).await });
        // Unwind safe: the delivery is dropped, and a sink has no state that half a delivery could break.
        poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| delivering.as_mut().poll(context))) {
            Ok(poll) => poll.map(|()| true),
            Err(_) => task::Poll::Ready(false),
        })
        .await
    }

    fn verdict(&self, attempt: u32, outcome: DeliveryResult) -> Verdict {
        let Err(error) = outcome else { return Verdict::Delivered };
        let wait = Duration::from_secs(2_u64.saturating_pow(attempt.min(16)));
        let retry = (attempt < self.settings.attempts_max).then(|| self.runtime().jittered(wait, JITTER));
        let reason = error.to_string().into();
        match (error, retry) {
            (DeliveryError::Unanswered(_), retry) => Verdict::Unanswered(retry, reason),
            (_, Some(wait)) => Verdict::RetryAfter(wait, reason),
            (_, None) => Verdict::Dead(reason),
        }
    }
}
