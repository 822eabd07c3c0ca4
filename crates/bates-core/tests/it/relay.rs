//! The relay in virtual time, with sinks that panic, hang or are slow.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bates_core::{
    DeliverEachFuture, DeliverFuture, Delivery, DeliveryError, DeliveryOutcomes, DocumentContent,
    DocumentFilter, DocumentState, Machine, Relay, RelaySettings, ScopeParams, SeriesSpec, Sink,
};
use bates_testkit::{MemoryStore, SimulatedRuntime};
use tokio::sync::watch;

/// Waits as long as the function says, which may also panic.
struct FaultySink<F>(F);

impl<F: Fn(&[Delivery]) -> Duration + Send + Sync + 'static> Sink for FaultySink<F> {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        Box::pin(async {
            tokio::time::sleep((self.0)(deliveries)).await;
            vec![Ok(()); deliveries.len()]
        })
    }

    fn batch_max(&self) -> usize {
        1_000
    }

    fn describe(&self) -> String {
        "a faulty sink".to_owned()
    }
}

/// Opens a machine with `documents` documents that wait for delivery.
async fn with_documents(documents: usize) -> Arc<Machine<MemoryStore>> {
    let runtime = Arc::new(SimulatedRuntime::new(1));
    let store = Arc::new(MemoryStore::with_runtime(runtime.clone()));
    let spec = SeriesSpec { has_sink: true, ..SeriesSpec::new("document".parse().unwrap(), "{seq}") };
    let machine = Arc::new(Machine::open(store, vec![spec], runtime).await.unwrap());
    let entry = machine.series("document").unwrap();
    for _ in 0..documents {
        let content = DocumentContent::Document("{}".into());
        machine.assign(&entry, ScopeParams::default(), content, None, "test").await.unwrap();
    }
    machine
}

/// Runs a relay until no document is pending, and returns how many documents are in which state.
async fn run_relay(
    machine: &Arc<Machine<MemoryStore>>,
    settings: RelaySettings,
    sink: Box<dyn Sink>,
) -> Vec<(DocumentState, u64)> {
    let (stop, stopped) = watch::channel(false);
    let relay = Relay::new(machine.clone(), machine.series("document").unwrap(), sink, settings);
    let running = tokio::spawn(relay.run(stopped));
    let states = loop {
        let tally = machine.count_documents().await.unwrap();
        if tally.iter().all(|(_, state, _)| *state != DocumentState::Pending) {
            break tally.into_iter().map(|(_, state, count)| (state, count)).collect();
        }
        assert!(!running.is_finished(), "the relay ended by itself");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    stop.send(true).unwrap();
    running.await.unwrap();
    states
}

async fn deliver_all(
    documents: usize,
    settings: RelaySettings,
    sink: impl Fn(&[Delivery]) -> Duration + Send + Sync + 'static,
) -> Vec<(DocumentState, u64)> {
    let machine = with_documents(documents).await;
    run_relay(&machine, settings, Box::new(FaultySink(sink))).await
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_does_not_end_the_relay() {
    let calls = AtomicUsize::new(0);
    let settings = RelaySettings {
        attempts_max: 5,
        claim_ttl: Duration::from_secs(1),
        lanes: 1,
        ..RelaySettings::default()
    };
    let states = deliver_all(3, settings, move |_| {
        assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
        Duration::ZERO
    });
    assert_eq!(states.await, [(DocumentState::Delivered, 3)]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_outlasts_its_claim_does_not_make_documents_dead() {
    let settings = RelaySettings {
        attempts_max: 3,
        claim_ttl: Duration::from_millis(500),
        lanes: 1,
        ..RelaySettings::default()
    };
    let each = |deliveries: &[Delivery]| {
        Duration::from_millis(10) * u32::try_from(deliveries.len()).unwrap_or(u32::MAX)
    };
    assert_eq!(deliver_all(150, settings, each).await, [(DocumentState::Delivered, 150)]);
}

/// Accepts every document at once, except one that it never answers for.
struct HangsOnOne {
    number: &'static str,
    /// Delivery attempts by number.
    attempts: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl HangsOnOne {
    fn take(&self, delivery: &Delivery) -> Option<Result<(), DeliveryError>> {
        *self.attempts.lock().unwrap().entry(delivery.number.to_string()).or_default() += 1;
        (*delivery.number != *self.number).then_some(Ok(()))
    }
}

impl Sink for HangsOnOne {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        let outcomes: Vec<_> = deliveries.iter().map(|delivery| self.take(delivery)).collect();
        Box::pin(async move {
            match outcomes.into_iter().collect() {
                Some(outcomes) => outcomes,
                None => std::future::pending().await,
            }
        })
    }

    fn deliver_each<'a>(
        &'a self,
        deliveries: &'a [Delivery],
        outcomes: &'a DeliveryOutcomes,
    ) -> DeliverEachFuture<'a> {
        Box::pin(async move {
            for (at, delivery) in deliveries.iter().enumerate() {
                if let Some(outcome) = self.take(delivery) {
                    outcomes.report(at, outcome);
                }
            }
            std::future::pending::<()>().await;
        })
    }

    fn batch_max(&self) -> usize {
        1_000
    }

    fn describe(&self) -> String {
        "a sink that hangs".to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_document_that_a_sink_hangs_on_is_tried_again() {
    let attempts = Arc::<Mutex<BTreeMap<_, _>>>::default();
    let sink = HangsOnOne { number: "7", attempts: attempts.clone() };
    let settings = RelaySettings {
        attempts_max: 2,
        claim_ttl: Duration::from_millis(300),
        lanes: 1,
        ..RelaySettings::default()
    };
    let machine = with_documents(16).await;
    let states = run_relay(&machine, settings, Box::new(sink)).await;
    assert_eq!(states, [(DocumentState::Delivered, 15), (DocumentState::Dead, 1)]);
    let attempts = attempts.lock().unwrap().clone();
    assert!(
        attempts.iter().all(|(number, count)| *count == if number == "7" { 2 } else { 1 }),
        "{attempts:?}"
    );
    let dead = DocumentFilter { state: Some(DocumentState::Dead), ..DocumentFilter::default() };
    let dead = machine.documents(dead, None, 10).await.unwrap();
    assert!(dead[0].in_doubt, "the sink may have taken it");
}

/// A sink that never answers.
struct Hanging(Arc<tokio::sync::Notify>);

impl Sink for Hanging {
    fn deliver<'a>(&'a self, _: &'a [Delivery]) -> DeliverFuture<'a> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }

    fn batch_max(&self) -> usize {
        1_000
    }

    fn describe(&self) -> String {
        "a sink that hangs".to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_sink_does_not_delay_a_stop_and_its_document_is_in_doubt() {
    let machine = with_documents(1).await;
    let hour = Duration::from_hours(1);
    let settings =
        RelaySettings { claim_ttl: hour, stop_timeout: Duration::ZERO, ..RelaySettings::default() };
    let (stop, stopped) = watch::channel(false);
    let begun = Arc::default();
    let sink = Box::new(Hanging(Arc::clone(&begun)));
    let relay = Relay::new(machine.clone(), machine.series("document").unwrap(), sink, settings);
    let running = tokio::spawn(relay.run(stopped));
    begun.notified().await;
    stop.send(true).unwrap();
    running.await.unwrap();
    let documents = machine.documents(DocumentFilter::default(), None, 10).await.unwrap();
    assert_eq!(
        (documents[0].state, documents[0].in_doubt),
        (DocumentState::Pending, true),
        "the sink may have taken it"
    );
}
