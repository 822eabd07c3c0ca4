//! Series described in the store: opened at the start, and synchronized between nodes.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bates_core::store::prelude::*;
use bates_core::{
    Actor, CreateOutcome, DescriptionChange, Limits, Machine, MachineError, Promise, PromiseChange, Registry,
    SeriesName, SeriesSpec, SystemRuntime,
};
use bates_testkit::MemoryStore;
use tokio::runtime::Handle;

use super::machine::spec;

type Node = Machine<MemoryStore>;

/// A description here is the template, the key and `lease_max`, separated by spaces.
fn read(name: &SeriesName, text: &str) -> Result<SeriesSpec, Box<str>> {
    let [template, key, lease_max] = *text.split(' ').collect::<Vec<_>>() else {
        return Err("expected three words".into());
    };
    let limits =
        Limits { lease_max: lease_max.parse().map_err(|_| "expected a number")?, ..Limits::default() };
    Ok(SeriesSpec { description: text.into(), limits, ..spec(name.as_str(), template, Some(key)) })
}

fn described(name: &str, text: &str) -> SeriesSpec {
    read(&name.parse().unwrap(), text).unwrap()
}

async fn node(store: &Arc<MemoryStore>, key: &str) -> Node {
    let fixed = spec("fixed", "{seq}", Some(key));
    let node = Machine::open(store.clone(), vec![fixed], Arc::new(SystemRuntime)).await.unwrap();
    node.load_series(read).await.unwrap();
    node
}

async fn take(node: &Node, count: u64) -> Vec<String> {
    let entry = node.series_or_sync("tenant").await.unwrap();
    node.next(&entry, (&[]).into(), count, Actor::library("test"))
        .await
        .unwrap()
        .values()
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_node_finds_a_series_that_another_node_just_created() {
    let store = Arc::new(MemoryStore::shared());
    let (one, other) = (node(&store, "fixed:{x}").await, node(&store, "fixed:{x}").await);
    assert!(other.series_or_sync("tenant").await.is_none());
    assert_eq!(
        one.create_series(described("tenant", "T-{seq} tenant 100"), Actor::library("test")).await,
        Ok(CreateOutcome::Created)
    );
    let mut numbers = take(&other, 50).await;
    numbers.extend(take(&one, 50).await);
    assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), 100, "{numbers:?}");
    assert!(other.series_by_key("tenant").is_some());
    assert_eq!(
        other.create_series(described("tenant", "T-{seq} tenant 100"), Actor::library("test")).await,
        Ok(CreateOutcome::Existed)
    );
    let differs = other
        .create_series(described("tenant", "T-{seq} tenant 200"), Actor::library("test"))
        .await
        .unwrap_err();
    assert_eq!(differs.code().name(), "series_exists");
}

#[tokio::test]
async fn a_node_syncs_changes_and_retirements_of_another_node_and_returns_its_ranges() {
    let store = Arc::new(MemoryStore::shared());
    let (one, other) = (node(&store, "fixed:{x}").await, node(&store, "fixed:{x}").await);
    one.create_series(described("tenant", "T-{seq} tenant 100"), Actor::library("test")).await.unwrap();
    take(&other, 1).await;
    let old = other.series("tenant").unwrap();
    let name: SeriesName = "tenant".parse().unwrap();
    let amended = |_: &SeriesSpec| Ok::<_, MachineError>(described("tenant", "T-{seq} tenant 500"));
    one.change_series(&name, amended, Actor::library("test")).await.unwrap();
    assert!(other.sync_series().await.unwrap().changed);
    assert_eq!(other.series("tenant").unwrap().spec().limits.lease_max, 500);
    // A caller that found the series before the change is served by its replacement.
    assert_eq!(other.next(&old, (&[]).into(), 1, Actor::library("test")).await.unwrap().len(), 1);
    let current = other.series("tenant").unwrap();
    one.retire_series(&name, Actor::library("test")).await.unwrap();
    assert!(other.sync_series().await.unwrap().changed && !other.sync_series().await.unwrap().changed);
    assert!(other.series("tenant").is_none() && other.series_by_key("tenant").is_none());
    let refused = other.next(&current, (&[]).into(), 1, Actor::library("test")).await.unwrap_err();
    assert_eq!(refused.code().name(), "unknown_series", "{refused}");
    let level = other.levels();
    assert!(!level.contains_key(&name), "the node returned its range: {level:?}");
}

#[tokio::test]
async fn a_node_refuses_only_the_series_whose_keys_overlap_its_configuration() {
    let store = Arc::new(MemoryStore::shared());
    let (one, other) = (node(&store, "fixed:{x}").await, node(&store, "bad:{x}").await);
    one.create_series(described("bad", "{seq} bad:one 100"), Actor::library("test")).await.unwrap();
    one.create_series(described("tenant", "T-{seq} tenant 100"), Actor::library("test")).await.unwrap();
    let synced = other.sync_series().await.unwrap();
    assert_eq!(synced.refused.iter().map(|error| error.code().name()).collect::<Vec<_>>(), ["keys_meet"]);
    assert!(other.series("tenant").is_some() && other.series("bad").is_none());
}

#[tokio::test]
async fn a_start_fails_if_keys_of_the_store_and_of_the_configuration_overlap() {
    for bad in ["fixed:{x}", "fixed:total", "fix{x}"] {
        let store: Arc<MemoryStore> = Arc::default();
        let first = node(&store, "elsewhere:{x}").await;
        first.create_series(described("tenant", "T-{seq} tenant 100"), Actor::library("test")).await.unwrap();
        first
            .create_series(described("other", &format!("{{seq}} {bad} 100")), Actor::library("test"))
            .await
            .unwrap();
        let fixed = spec("second", "{seq}", Some("fixed:{name}"));
        let machine = Machine::open(store.clone(), vec![fixed], Arc::new(SystemRuntime)).await.unwrap();
        let refused = machine.load_series(read).await.unwrap_err();
        assert_eq!(refused.code().name(), "keys_meet", "{refused}");
        assert!(machine.series("tenant").is_none(), "no series was opened");
    }
}

/// Both find the key free; the store accepts one of them.
#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_create_no_series_with_one_key_at_the_same_time() {
    let store = Arc::new(MemoryStore::shared());
    let (one, other) = (node(&store, "fixed:{x}").await, node(&store, "fixed:{x}").await);
    let is_first = AtomicBool::new(true);
    let admit = |_: &Registry| {
        if is_first.swap(false, Ordering::Relaxed) {
            let create = other.create_series(described("b", "B-{seq} one-key 100"), Actor::library("test"));
            let created = tokio::task::block_in_place(|| Handle::current().block_on(create));
            assert_eq!(created, Ok(CreateOutcome::Created));
        }
        Ok::<_, MachineError>(())
    };
    let late =
        one.create_series_if(described("a", "A-{seq} one-key 100"), admit, Actor::library("test")).await;
    assert_eq!(late.unwrap_err().code().name(), "keys_meet");
    assert!(one.series("a").is_none() && one.series("b").is_some());
    // A change of another series is no reason to refuse one.
    is_first.store(true, Ordering::Relaxed);
    let admit = |_: &Registry| {
        if is_first.swap(false, Ordering::Relaxed) {
            let create = other.create_series(described("c", "C-{seq} other-key 100"), Actor::library("test"));
            tokio::task::block_in_place(|| Handle::current().block_on(create)).unwrap();
        }
        Ok::<_, MachineError>(())
    };
    let created = one.create_series_if(described("d", "D-{seq} d 100"), admit, Actor::library("test")).await;
    assert_eq!(created, Ok(CreateOutcome::Created));
}

/// As an earlier version could leave them.
#[tokio::test]
async fn of_two_series_with_one_key_every_node_opens_the_first_and_the_other_can_be_retired() {
    let store = Arc::new(MemoryStore::shared());
    let (one, other) = (node(&store, "fixed:{x}").await, node(&store, "elsewhere:{x}").await);
    one.create_series(described("b", "B-{seq} one-key 100"), Actor::library("test")).await.unwrap();
    other.create_series(described("a", "A-{seq} a 100"), Actor::library("test")).await.unwrap();
    let change = DescriptionChange {
        before: Some("A-{seq} a 100".into()),
        after: Some("A-{seq} one-key 100".into()),
        revision: None,
    };
    assert_eq!(store.describe("a".parse().unwrap(), change, None).await, Ok(true));
    let fixed = spec("fixed", "{seq}", Some("fixed:{x}"));
    let machine = Machine::open(store.clone(), vec![fixed], Arc::new(SystemRuntime)).await.unwrap();
    let closed = machine.load_series(read).await.unwrap();
    assert_eq!(closed.iter().map(|error| error.code().name()).collect::<Vec<_>>(), ["keys_meet"]);
    assert!(machine.series("a").is_some() && machine.series("b").is_none());
    machine.retire_series(&"b".parse().unwrap(), Actor::library("test")).await.unwrap();
    assert_eq!(store.descriptions().await.unwrap().len(), 1, "b is retired");
    let unknown = machine.retire_series(&"b".parse().unwrap(), Actor::library("test")).await;
    assert_eq!(unknown.unwrap_err().code().name(), "unknown_series");
}

#[tokio::test]
async fn a_series_that_one_node_configures_stays_described_for_the_others() {
    let store = Arc::new(MemoryStore::shared());
    let one = node(&store, "fixed:{x}").await;
    one.create_series(described("tenant", "T-{seq} tenant 100"), Actor::library("test")).await.unwrap();
    let configured = spec("tenant", "T-{seq}", Some("tenant"));
    let other = Machine::open(store.clone(), vec![configured], Arc::new(SystemRuntime)).await.unwrap();
    other.load_series(read).await.unwrap();
    one.sync_series().await.unwrap();
    assert!(one.series("tenant").is_some(), "the configuration of one node retires nothing on another");
}

#[tokio::test]
async fn a_node_whose_store_was_restored_issues_nothing_from_its_range() {
    let store = Arc::new(MemoryStore::shared());
    let node_store = Arc::new(store.node());
    let fixed = SeriesSpec { description: "".into(), ..spec("tenant", "T-{seq}", Some("tenant")) };
    let node = Machine::open(node_store.clone(), vec![fixed], Arc::new(SystemRuntime)).await.unwrap();
    node.load_series(read).await.unwrap();
    let entry = node.series("tenant").unwrap();
    let first = node.next(&entry, (&[]).into(), 1, Actor::library("test")).await.unwrap();
    assert_eq!(first.values().collect::<Vec<_>>(), ["T-1"]);
    node_store.mark_restored();
    assert_eq!(node.sync_series().await.unwrap_err().code().name(), "store_poisoned");
    let refused = node.next(&entry, (&[]).into(), 1, Actor::library("test")).await.unwrap_err();
    assert_eq!(refused.code().name(), "store_poisoned", "the restored store does not know of its range");
}

/// A description here is a promise.
fn promised(name: &SeriesName, text: &str) -> Result<SeriesSpec, Box<str>> {
    let promise =
        Promise::ALL.into_iter().find(|promise| promise.to_string() == text).ok_or("expected a promise")?;
    Ok(SeriesSpec { description: text.into(), promise, ..spec(name.as_str(), "{seq}", Some("tenant")) })
}

#[tokio::test]
async fn a_series_created_again_by_another_node_takes_nothing_from_the_old_range() {
    for promise in ["ordered", "gapless"] {
        let (store, name) = (Arc::new(MemoryStore::shared()), "tenant".parse::<SeriesName>().unwrap());
        let gated = Arc::new(store.gated_node());
        let one = Machine::open(store.clone(), vec![], Arc::new(SystemRuntime)).await.unwrap();
        let other = Arc::new(Machine::open(gated.clone(), vec![], Arc::new(SystemRuntime)).await.unwrap());
        one.load_series(promised).await.unwrap();
        one.create_series(promised(&name, "unique").unwrap(), Actor::library("test")).await.unwrap();
        other.load_series(promised).await.unwrap();
        gated.let_through(1);
        let before = other.series("tenant").unwrap();
        other.take(&before, (&[]).into(), 30, Actor::resp("test")).await.unwrap();
        one.retire_series(&name, Actor::library("test")).await.unwrap();
        one.create_series(promised(&name, "unique").unwrap(), Actor::library("test")).await.unwrap();
        if promise != "unique" {
            let from = Promise::Unique;
            let to = promise.parse().unwrap();
            let described = DescriptionChange {
                before: Some("unique".into()),
                after: Some(promise.into()),
                revision: None,
            };
            store
                .change_promise(name.clone(), PromiseChange { from, to }, Some(described), None)
                .await
                .unwrap();
        }
        // The old cell cannot be sealed before its refill has ended; each call to sync is cancelled
        // meanwhile.
        while Arc::ptr_eq(&other.series("tenant").unwrap(), &before) {
            let mut syncing = Box::pin(other.sync_series());
            for _ in 0..10_000 {
                tokio::select! {
                    biased;
                    synced = &mut syncing => panic!("it did not wait for the refill: {synced:?}"),
                    () = tokio::task::yield_now() => {}
                }
            }
        }
        let current = other.series("tenant").unwrap();
        let taken = other.try_next_by_key(&current, "tenant", 1, &mut String::new());
        assert!(taken.is_none(), "{promise}: a number of the range of the unique series");
        gated.let_through(10);
        let number = other.take(&before, (&[]).into(), 1, Actor::resp("test")).await.unwrap();
        assert!(number.last() > 32, "a caller that found the unique series is served by its replacement");
    }
}
