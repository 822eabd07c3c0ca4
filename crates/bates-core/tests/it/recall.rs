//! A recall makes a process give up the ranges that it holds of a series, and report them.

use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{Actor, Machine, PositionRange, SeriesName, SeriesSpec, SystemRuntime};
use bates_testkit::MemoryStore;

use super::machine::spec;

fn read(_: &SeriesName, _: &str) -> Result<SeriesSpec, Box<str>> {
    Err("no series is described in the store".into())
}

async fn node(store: &Arc<MemoryStore>) -> Arc<Machine<MemoryStore>> {
    let specs = ["tenant", "other"].map(|name| spec(name, "{seq}", Some(&format!("{name}:{{x}}"))));
    let node = Machine::open(store.clone(), specs.into(), Arc::new(SystemRuntime)).await.unwrap();
    node.load_series(read).await.unwrap();
    Arc::new(node)
}

async fn take(node: &Machine<MemoryStore>, series: &str) -> u64 {
    let entry = node.series(series).unwrap();
    let taken = node.take(&entry, (&[("x", "a")]).into(), 1, Actor::library("test")).await.unwrap();
    taken.last()
}

fn given_up(memory: &MemoryStore) -> Vec<(String, PositionRange)> {
    memory.given_up().into_iter().map(|(scope_id, range)| (scope_id.series.to_string(), range)).collect()
}

fn range(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

#[tokio::test]
async fn a_recall_makes_a_process_give_up_and_report_its_ranges_of_that_series_only() {
    let memory = Arc::new(MemoryStore::shared());
    let store = Arc::new(memory.node());
    let node = node(&store).await;
    assert_eq!((take(&node, "tenant").await, take(&node, "other").await), (1, 1));
    memory.recall("tenant".parse().unwrap()).await.unwrap();
    node.sync_series().await.unwrap();
    assert_eq!(given_up(&memory), [("tenant".to_owned(), range(2, 33))]);
    assert_eq!(store.recalls().await, Ok(vec![]), "the recall is answered");
    assert_eq!(take(&node, "tenant").await, 33, "positions that were given up are not issued");
    assert_eq!(take(&node, "other").await, 2, "the other series keeps its range");
    node.sync_series().await.unwrap();
    assert_eq!(given_up(&memory).len(), 1, "the range is not reported again");
}

#[tokio::test]
async fn a_recall_is_answered_only_after_a_range_under_way_was_given_up_too() {
    let memory = Arc::new(MemoryStore::shared());
    let store = Arc::new(memory.gated_node());
    let node = node(&store).await;
    let waiting = tokio::spawn({
        let node = node.clone();
        async move { take(&node, "tenant").await }
    });
    while store.counts().is_empty() {
        tokio::task::yield_now().await;
    }
    memory.recall("tenant".parse().unwrap()).await.unwrap();
    let syncing = tokio::spawn({
        let node = node.clone();
        async move { node.sync_series().await.map(drop) }
    });
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(!syncing.is_finished(), "a range may still arrive");
    assert_eq!(store.recalls().await.unwrap().len(), 1);
    // The first grant is recalled; the second serves the waiting caller.
    store.let_through(2);
    syncing.await.unwrap().unwrap();
    assert_eq!(store.recalls().await, Ok(vec![]));
    assert_eq!(given_up(&memory), [("tenant".to_owned(), range(1, 33))]);
    assert_eq!(waiting.await.unwrap(), 33);
}

/// Otherwise the store would count those positions as issued.
#[tokio::test]
async fn a_range_that_was_given_up_counts_as_held_until_it_is_reported() {
    let memory = Arc::new(MemoryStore::shared());
    let store = Arc::new(memory.gated_node());
    let node = node(&store).await;
    store.let_through(1);
    for number in 1..=25 {
        assert_eq!(take(&node, "tenant").await, number);
    }
    // At the watermark the next range is requested; the first is recalled meanwhile.
    while store.counts().len() < 2 {
        tokio::task::yield_now().await;
    }
    memory.recall("tenant".parse().unwrap()).await.unwrap();
    let syncing = tokio::spawn({
        let node = node.clone();
        async move { node.sync_series().await.map(drop) }
    });
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let waiting = tokio::spawn({
        let node = node.clone();
        async move { take(&node, "tenant").await }
    });
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    // The grant that is recalled, and the one for the waiting caller.
    store.let_through(2);
    waiting.await.unwrap();
    syncing.await.unwrap().unwrap();
    let reported = store.held_from();
    assert_eq!(
        reported.get(2),
        Some(&Some(26)),
        "26 to 32 were given up, but not reported yet: {reported:?}"
    );
}

#[tokio::test]
async fn a_recall_of_a_series_without_holders_ends_at_once() {
    let memory = Arc::new(MemoryStore::shared());
    let node = node(&Arc::new(memory.node())).await;
    let recalled = node.recall(&"tenant".parse().unwrap(), Duration::from_hours(1)).await.unwrap();
    assert!(recalled.silent.is_empty());
    assert_eq!(memory.recalls().await, Ok(vec![]));
}
