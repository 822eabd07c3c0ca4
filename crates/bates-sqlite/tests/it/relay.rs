//! A relay on a real store, with sinks that are worse than any real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bates_core::{
    Content, Delivering, Delivery, Machine, Relay, RelaySettings, ScopeName, SeriesSpec, Sink, State,
    SystemClock,
};
use bates_sqlite::{Opening, SqliteStore};
use tempfile::TempDir;
use tokio::sync::watch;

struct Bad<F>(F);

impl<F: Fn(&[Delivery]) -> Duration + Send + Sync + 'static> Sink for Bad<F> {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> Delivering<'a> {
        Box::pin(async {
            tokio::time::sleep((self.0)(deliveries)).await;
            vec![Ok(()); deliveries.len()]
        })
    }

    fn batch_max(&self) -> usize {
        1_000
    }

    fn describe(&self) -> String {
        "a bad one".to_owned()
    }
}

/// Delivers so many documents, and answers how many are in which state once none is pending.
async fn delivered(
    documents: usize,
    settings: RelaySettings,
    sink: impl Fn(&[Delivery]) -> Duration + Send + Sync + 'static,
) -> Vec<(State, u64)> {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path(), Opening::First).unwrap();
    let spec = SeriesSpec { has_sink: true, ..SeriesSpec::new("document".parse().unwrap(), "{seq}") };
    let machine = Arc::new(Machine::open(store, vec![spec], Arc::new(SystemClock)).await.unwrap());
    let entry = machine.named("document").unwrap();
    for _ in 0..documents {
        let content = Content::Document("{}".into());
        machine.assign(&entry, ScopeName::default(), content, None, "test").await.unwrap();
    }
    let (stop, stopped) = watch::channel(false);
    let relay = Relay::new(machine.clone(), entry, Box::new(Bad(sink)), settings);
    let running = tokio::spawn(relay.run(stopped));
    let states = loop {
        let tally = machine.tally().await.unwrap();
        if tally.iter().all(|(_, state, _)| *state != State::Pending) {
            break tally.into_iter().map(|(_, state, count)| (state, count)).collect();
        }
        assert!(!running.is_finished(), "a relay ends when it is told to");
        tokio::task::yield_now().await;
    };
    stop.send(true).unwrap();
    running.await.unwrap();
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_panics_does_not_end_the_relay() {
    let calls = AtomicUsize::new(0);
    let settings = RelaySettings {
        tries_max: 5,
        claim_lasts: Duration::from_secs(1),
        lanes: 1,
        ..RelaySettings::default()
    };
    let states = delivered(3, settings, move |_| {
        assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
        Duration::ZERO
    });
    assert_eq!(states.await, [(State::Delivered, 3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_do_not_die_because_a_batch_of_them_takes_longer_than_its_claim() {
    let settings = RelaySettings {
        tries_max: 3,
        claim_lasts: Duration::from_millis(500),
        lanes: 1,
        ..RelaySettings::default()
    };
    let each = |deliveries: &[Delivery]| {
        Duration::from_millis(10) * u32::try_from(deliveries.len()).unwrap_or(u32::MAX)
    };
    assert_eq!(delivered(150, settings, each).await, [(State::Delivered, 150)]);
}
