//! Numbers by series name and by key, pinned definitions, and rules that reject numbers.

use std::collections::HashSet;
use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{
    Actor, KeyTemplate, Machine, MachineError, NextError, Promise, SeriesEntry, SeriesSpec, StoreError,
    SystemRuntime,
};
use bates_pattern::{Position, Reject};
use bates_testkit::MemoryStore;

pub(crate) fn spec(name: &str, template: &str, key: Option<&str>) -> SeriesSpec {
    let key = key.map(|key| KeyTemplate::parse(key).unwrap());
    SeriesSpec { key, ..SeriesSpec::new(name.parse().unwrap(), template) }
}

fn document() -> SeriesSpec {
    let start = Position::new(1001);
    SeriesSpec { start, ..spec("document", "{project}-{type}-{seq}", Some("id-pool:{project}:{type}")) }
}

fn short() -> SeriesSpec {
    SeriesSpec { shuffled: true, ..spec("short", "{seq:base62:6}", Some("short")) }
}

fn small_id() -> SeriesSpec {
    let reject = Reject::default().with_digits("openg2p".parse().unwrap());
    SeriesSpec { shuffled: true, reject, ..spec("farmer", "{seq:4}{check:verhoeff}", Some("farmer")) }
}

/// Twelve digits: in counting order billions of rejected numbers, which begin with 0 or 1, come first.
fn farmer() -> SeriesSpec {
    SeriesSpec { template: "{seq:11}{check:verhoeff}".into(), ..small_id() }
}

async fn machine(store: &Arc<MemoryStore>, specs: Vec<SeriesSpec>) -> Machine<MemoryStore> {
    Machine::open(store.clone(), specs, Arc::new(SystemRuntime)).await.unwrap()
}

async fn next(
    machine: &Machine<MemoryStore>,
    entry: &SeriesEntry,
    parameters: &[(&str, &str)],
    count: u64,
) -> Vec<String> {
    let numbers = machine.next(entry, parameters.into(), count, Actor::library("test")).await.unwrap();
    numbers.iter().map(|(_, number)| number.to_owned()).collect()
}

#[tokio::test]
async fn numbers_come_by_name_and_by_key_from_one_scope() {
    let machine =
        machine(&Arc::default(), vec![document(), spec("counter", "{seq}", Some("counter:{name}"))]).await;
    let entry = &machine.series("document").unwrap();
    let scope = [("type", "9012"), ("project", "PROJ")];
    assert_eq!(next(&machine, entry, &scope, 2).await, ["PROJ-9012-1001", "PROJ-9012-1002"]);
    let by_key = &machine.series_by_key("id-pool:PROJ:9012").unwrap();
    assert_eq!(by_key.series().name(), entry.series().name());
    let mut room = String::new();
    let taken = machine.try_next_by_key(by_key, "id-pool:PROJ:9012", 1, &mut room).unwrap();
    assert_eq!(taken.positions().collect::<Vec<_>>(), [1003], "the order of the parameters does not matter");
    assert!(machine.try_next_by_key(by_key, "id-pool:PROJ:9013", 1, &mut room).is_none(), "another scope");
    assert!(machine.series_by_key("id-pool:PROJ").is_none() && machine.series_by_key("unknown").is_none());
    assert!(!entry.numbers_are_positions() && machine.series("counter").unwrap().numbers_are_positions());
}

#[tokio::test]
async fn invalid_parameters_are_refused_and_create_no_scope() {
    let store = Arc::default();
    let machine = machine(&store, vec![document()]).await;
    let entry = &machine.series("document").unwrap();
    for bad in [
        vec![("project", "PROJ")],
        vec![("project", "../"), ("type", "1")],
        vec![("project", "*"), ("type", "1")],
        vec![("project", "P"), ("type", "1"), ("nonsense", "1")],
    ] {
        let refused = machine.next(entry, bad.as_slice().into(), 1, Actor::library("test")).await;
        assert!(matches!(refused, Err(NextError::Scope(_))), "{bad:?}");
    }
    let scopes = store.scopes("document".parse().unwrap(), None, 10).await.unwrap();
    assert!(scopes.is_empty(), "{scopes:?}");
}

#[tokio::test]
async fn a_shuffled_series_keeps_its_key_over_restarts() {
    let store: Arc<MemoryStore> = Arc::default();
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let machine = machine(&store, vec![short()]).await;
        let entry = &machine.series("short").unwrap();
        for key in next(&machine, entry, &[], 200).await {
            assert_eq!(key.len(), 6);
            assert!(seen.insert(key), "a number repeated after the key was read again");
        }
    }
}

#[tokio::test]
async fn with_rules_every_accepted_number_is_issued_once_until_the_space_is_exhausted() {
    let store: Arc<MemoryStore> = Arc::default();
    let mut seen = HashSet::new();
    // Each round stops the machine; the next one issues the positions that it returned.
    for count in [1, 7, 100, 1_000, 5_000] {
        let machine = machine(&store, vec![small_id()]).await;
        let entry = &machine.series("farmer").unwrap();
        let numbers = next(&machine, entry, &[], count).await;
        assert!(
            numbers.len() as u64 == count || seen.len() + numbers.len() == 3_723,
            "only the last round may get fewer"
        );
        assert!(numbers.into_iter().all(|number| seen.insert(number)), "never twice");
        machine.close().await;
    }
    assert_eq!(seen.len(), 3_723);
    let machine = machine(&store, vec![small_id()]).await;
    let refused = machine
        .next(&machine.series("farmer").unwrap(), (&[]).into(), 1, Actor::library("test"))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, NextError::Issue(error) if error.code() == bates_core::ErrorCode::EXHAUSTED),
        "{refused}"
    );
}

#[tokio::test]
async fn rules_that_reject_a_long_run_of_numbers_give_an_error_instead_of_a_long_search() {
    let machine = machine(&Arc::default(), vec![SeriesSpec { shuffled: false, ..farmer() }]).await;
    let refused = machine
        .next(&machine.series("farmer").unwrap(), (&[]).into(), 1, Actor::library("test"))
        .await
        .unwrap_err();
    assert!(matches!(refused, NextError::AllRejected { .. }), "{refused}");
}

#[tokio::test]
async fn a_caller_gets_the_numbers_found_before_a_long_run_of_rejected_ones() {
    let spec = SeriesSpec {
        start: Position::new(29_999_990),
        reject: Reject::default().with_restricted(&["3"]).unwrap(),
        ..SeriesSpec::new("plain".parse().unwrap(), "{seq:8}")
    };
    let machine = machine(&Arc::default(), vec![spec]).await;
    let numbers = machine
        .next(&machine.series("plain").unwrap(), (&[]).into(), 20, Actor::library("test"))
        .await
        .unwrap();
    let numbers: Vec<&str> = numbers.iter().map(|(_, number)| number).collect();
    let expected = (29_999_990..30_000_000).map(|number: u64| number.to_string());
    let expected: Vec<String> = expected.filter(|number| !number.contains('3')).collect();
    assert_eq!(numbers, expected, "the search does not go through the next ten million positions");
}

#[tokio::test]
async fn a_changed_template_start_parameter_or_promise_is_refused() {
    let store: Arc<MemoryStore> = Arc::default();
    machine(&store, vec![document()]).await;
    for changed in [
        SeriesSpec { template: "{project}/{type}-{seq}".into(), ..document() },
        SeriesSpec { start: Position::new(1), ..document() },
        // Parameter names identify a scope: with other names, other scopes would issue the same texts.
        SeriesSpec { key: Some(KeyTemplate::parse("p:{project}:{type}:{tenant}").unwrap()), ..document() },
    ] {
        let refused =
            Machine::open(store.clone(), vec![changed], Arc::new(SystemRuntime)).await.err().unwrap();
        assert!(matches!(refused, MachineError::Store(StoreError::Pinned { .. })), "{refused}");
    }
    let ordered = SeriesSpec { promise: Promise::Ordered, ..document() };
    let refused = Machine::open(store.clone(), vec![ordered], Arc::new(SystemRuntime)).await.err().unwrap();
    assert!(matches!(refused, MachineError::Store(StoreError::PromisePinned { .. })), "{refused}");
    // The key does not decide the text, so it may change.
    machine(&store, vec![SeriesSpec { key: None, ..document() }]).await;
}

#[tokio::test]
async fn series_with_the_same_name_or_overlapping_keys_are_refused() {
    let open = async |specs: Vec<SeriesSpec>| {
        let store: Arc<MemoryStore> = Arc::default();
        Machine::open(store, specs, Arc::new(SystemRuntime)).await.err().unwrap().to_string()
    };
    let twice = open(vec![document(), document()]).await;
    assert!(twice.contains("described twice"), "{twice}");
    let meet = open(vec![spec("a", "{seq}", Some("k:{x}")), spec("b", "{seq}", Some("k:{y}"))]).await;
    assert!(meet.contains("could be the same"), "{meet}");
    let lacks = open(vec![spec("a", "{project}-{seq}", Some("k:{x}"))]).await;
    assert!(lacks.contains("does not name the parameter {project}"), "{lacks}");
    let bad = open(vec![spec("a", "{seq", None)]).await;
    assert!(bad.contains("column 5"), "{bad}");
}

#[tokio::test]
async fn look_ups_reveal_no_position_of_a_shuffled_series() {
    let series = SeriesSpec { shuffled: true, ..spec("pin", "{seq:4}", None) };
    let machine = machine(&Arc::default(), vec![series]).await;
    let entry = &machine.series("pin").unwrap();
    next(&machine, entry, &[], 3).await;
    let (mut granted_count, mut shown) = (0, HashSet::new());
    for id in (0..10_000).map(|number| format!("{number:04}")) {
        let found = machine.find(&id, false).await.unwrap().remove(0);
        assert_eq!(found.position, None, "{id}");
        granted_count += u64::from(found.granted == Some(true));
        shown.extend(machine.find(&id, true).await.unwrap()[0].position);
    }
    assert!(granted_count >= 3, "whether a number was granted is still shown");
    assert_eq!(shown.len(), 10_000, "a caller that may see positions sees all of them");
}
