//! `INCRBY` answers with the last number of a run, and every number of the run belongs to the caller alone.

use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{
    Actor, GrantPurpose, GrantRequest, KeyTemplate, Limits, Machine, Position, Promise, ScopeId, ScopeKey,
    SeriesSpec, SystemRuntime,
};
use bates_testkit::history::{Client, Gaps, History, PendingRequest, Rules, Scope};
use bates_testkit::{Fault, MemoryStore};
use proptest::prelude::*;

type Numbering = Machine<MemoryStore>;

/// A machine with the series `{seq}`, whose scopes have the key `n:{name}`, and the history of its callers.
struct Fixture {
    memory: Arc<MemoryStore>,
    store: Arc<MemoryStore>,
    machine: Numbering,
    history: History,
    scope: Scope,
    adopted: Vec<u64>,
}

impl Fixture {
    async fn open(promise: Promise, is_shared: bool, adopted: Vec<u64>) -> Self {
        let memory = Arc::new(if is_shared { MemoryStore::shared() } else { MemoryStore::default() });
        let store = Arc::new(memory.node());
        let limits = Limits { lease_min: 8, lease_max: 128, ..Limits::default() };
        let key = Some(KeyTemplate::parse("n:{name}").unwrap());
        let spec = SeriesSpec { key, promise, limits, ..SeriesSpec::new("n".parse().unwrap(), "{seq}") };
        let machine = Machine::open(store.clone(), vec![spec], Arc::new(SystemRuntime)).await.unwrap();
        memory
            .adopt_positions(scope_id(), adopted.iter().copied().filter_map(Position::new).collect(), None)
            .await
            .unwrap();
        let history = History::default();
        let scope = history.scope("a");
        Self { memory, store, machine, history, scope, adopted }
    }

    /// Records that the caller owns `count` numbers up to `last`; none of them may be adopted.
    fn record(&self, client: &mut Client, request: PendingRequest, count: u64, last: u64) {
        let run = last + 1 - count..=last;
        assert!(
            !self.adopted.iter().any(|adopted| run.contains(adopted)),
            "{run:?} contains an adopted number"
        );
        client.answered(request, *run.start(), last);
    }

    /// Takes numbers from memory or else from the store, as the Redis protocol does. Returns the last number.
    async fn increase(&self, client: &mut Client, count: u64) -> Option<u64> {
        let request = client.ask(self.scope);
        let entry = self.machine.series_by_key("n:a").unwrap();
        let taken = match self.machine.try_next_by_key(&entry, "n:a", count, &mut String::new()) {
            Some(taken) => taken,
            None => {
                let name = [("name", "a")];
                self.machine.take(&entry, (&name).into(), count, Actor::resp("test")).await.ok()?
            }
        };
        let last = taken.last();
        self.record(client, request, count, last);
        Some(last)
    }

    /// Takes positions straight from the cursor, as a reservation, a pool or another node does.
    async fn take_elsewhere(&self, client: &mut Client, count: u64) {
        let request = client.ask(self.scope);
        if let Ok(grant) = self.memory.grant(grant_request(count, 1 << 40)).await {
            self.record(client, request, grant.range.count(), grant.range.to() - 1);
        }
    }
}

fn grant_request(count: u64, end: u64) -> GrantRequest {
    let (start, scopes_max, purpose) = (1, 10, GrantPurpose::HandOut);
    GrantRequest {
        scope_id: scope_id(),
        count,
        count_needed: count,
        start,
        end,
        scopes_max,
        purpose,
        promise: None,
        held_from: None,
    }
}

fn scope_id() -> ScopeId {
    ScopeId { series: "n".parse().unwrap(), scope: ScopeKey::new([("name", "a")], None).unwrap() }
}

#[tokio::test]
async fn a_run_does_not_span_positions_granted_to_others() {
    let fixture = Fixture::open(Promise::Unique, false, vec![]).await;
    let mut client = fixture.history.client();
    assert_eq!(fixture.increase(&mut client, 1).await, Some(1));
    fixture.take_elsewhere(&mut client, 1).await;
    assert_eq!(
        fixture.increase(&mut client, 20).await,
        Some(29),
        "up to 8 is held, and 9 belongs to another"
    );
    assert_eq!(fixture.increase(&mut client, 1).await, Some(2), "the held range is still there");
    assert_eq!(fixture.increase(&mut client, 6).await, Some(8), "the rest of the held range is one run");
    drop(client);
    assert_eq!(fixture.history.check(Rules { is_ordered: false, gaps: Gaps::Any }), []);
}

#[tokio::test]
async fn an_ordered_run_waits_for_the_next_range_and_skips_nothing() {
    let fixture = Fixture::open(Promise::Ordered, false, vec![]).await;
    let mut client = fixture.history.client();
    for (count, last) in [(1, 1), (20, 21), (1, 22), (500, 522), (1, 523)] {
        assert_eq!(fixture.increase(&mut client, count).await, Some(last));
    }
}

#[tokio::test]
async fn a_run_skips_adopted_numbers_unless_the_series_is_gapless() {
    for promise in Promise::ALL {
        for is_shared in [false, true] {
            let fixture = Fixture::open(promise, is_shared, vec![4, 6, 40]).await;
            let mut client = fixture.history.client();
            let first = fixture.increase(&mut client, 5).await;
            if promise == Promise::Gapless {
                assert_eq!(first, None, "the run would leave a gap");
                assert_eq!(fixture.increase(&mut client, 3).await, Some(3), "a refusal takes nothing");
                continue;
            }
            assert!(first.is_some_and(|last| last >= 11), "{promise}, shared: {is_shared}: {first:?}");
            assert!(fixture.increase(&mut client, 30).await.is_some_and(|last| last >= 70));
            assert!(fixture.increase(&mut client, 1).await.is_some());
            drop(client);
            let is_ordered = promise == Promise::Ordered;
            assert_eq!(fixture.history.check(Rules { is_ordered, gaps: Gaps::Any }), []);
        }
    }
}

#[tokio::test]
async fn a_run_longer_than_the_remaining_space_takes_nothing() {
    let store: Arc<MemoryStore> = Arc::default();
    let spec = SeriesSpec {
        key: Some(KeyTemplate::parse("n:{name}").unwrap()),
        limits: Limits { lease_min: 40, ..Limits::default() },
        ..SeriesSpec::new("n".parse().unwrap(), "{seq:4}")
    };
    let machine = Machine::open(store.clone(), vec![spec], Arc::new(SystemRuntime)).await.unwrap();
    let entry = machine.series("n").unwrap();
    let take =
        async |count| machine.take(&entry, (&[("name", "a")]).into(), count, Actor::resp("test")).await;
    assert_eq!(take(1).await.unwrap().last(), 1);
    store.grant(grant_request(9_999 - 40, 10_000)).await.unwrap();
    let refused = take(40).await.unwrap_err();
    assert_eq!(refused.code().name(), "exhausted");
    assert!(refused.to_string().contains("39 of 40 positions are left"), "{refused}");
    assert_eq!(take(39).await.unwrap().last(), 40, "as many as the error said were left");
    assert_eq!(take(2).await.unwrap_err().code().name(), "exhausted");
}

#[derive(Clone, Debug)]
enum Step {
    Increase(u64),
    TakeElsewhere(u64),
    Evict,
    Stop,
    Plan(Fault),
    /// Several callers increase at once.
    Together(Vec<u64>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Increase(1)),
        6 => (2_u64..60).prop_map(Step::Increase),
        3 => (1_u64..4).prop_map(Step::TakeElsewhere),
        1 => Just(Step::Evict),
        1 => Just(Step::Stop),
        2 => prop::sample::select(vec![Fault::BeforeWrite, Fault::AfterWrite]).prop_map(Step::Plan),
        3 => prop::collection::vec(1_u64..40, 2..6).prop_map(Step::Together),
    ]
}

async fn check_steps(promise: Promise, is_shared: bool, adopted: Vec<u64>, steps: Vec<Step>) {
    let fixture = Fixture::open(promise, is_shared, adopted).await;
    let mut client = fixture.history.client();
    for step in steps {
        match step {
            Step::Increase(count) => drop(fixture.increase(&mut client, count).await),
            // On a store that is not shared, one process alone gets the grants of an ordered series.
            Step::TakeElsewhere(_) if promise == Promise::Ordered && !is_shared => {}
            Step::TakeElsewhere(count) => fixture.take_elsewhere(&mut client, count).await,
            Step::Evict => drop(fixture.machine.evict_idle().await),
            Step::Plan(fault) => fixture.store.plan(&[fault]),
            Step::Stop => break,
            Step::Together(counts) => {
                let mut clients: Vec<Client> = counts.iter().map(|_| fixture.history.client()).collect();
                let all =
                    clients.iter_mut().zip(counts).map(|(client, count)| fixture.increase(client, count));
                join_all(all).await;
            }
        }
        tokio::task::yield_now().await;
    }
    fixture.machine.close().await;
    drop(client);
    let is_ordered = promise != Promise::Unique;
    assert_eq!(fixture.history.check(Rules { is_ordered, gaps: Gaps::Any }), []);
}

/// Polls all futures in turn until each is done.
async fn join_all(futures: impl Iterator<Item = impl Future<Output = Option<u64>>>) {
    let mut waiting: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        waiting.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn every_number_of_a_run_belongs_to_one_caller_whatever_happens(
        steps in prop::collection::vec(step(), 1..40),
        promise in prop::sample::select(Promise::ALL.to_vec()),
        is_shared in any::<bool>(),
        adopted in prop::collection::btree_set(1_u64..400, 0..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check_steps(promise, is_shared, adopted.into_iter().collect(), steps));
    }
}
