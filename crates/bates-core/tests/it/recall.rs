//! Ranges of a series that are recalled: given up by the process that holds them, and accounted for.

use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{Actor, Machine, PositionRange, SeriesName, SeriesSpec, SystemRuntime};
use bates_testkit::MemoryStore;

use super::machine::spec;

type Watched = Arc<MemoryStore>;

fn read(_: &SeriesName, _: &str) -> Result<SeriesSpec, Box<str>> {
    Err("nothing is described".into())
}

async fn node(store: &Watched) -> Arc<Machine<MemoryStore>> {
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
    memory.given_up().into_iter().map(|(place, range)| (place.series.to_string(), range)).collect()
}

fn lease(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

#[tokio::test]
async fn a_recall_makes_a_process_give_up_its_ranges_of_that_series_only_and_report_them() {
    let memory = Arc::new(MemoryStore::shared());
    let store = Arc::new(memory.node());
    let node = node(&store).await;
    assert_eq!((take(&node, "tenant").await, take(&node, "other").await), (1, 1));
    memory.recall("tenant".parse().unwrap()).await.unwrap();
    node.sync_series().await.unwrap();
    assert_eq!(given_up(&memory), [("tenant".to_owned(), lease(2, 33))]);
    assert_eq!(store.recalls().await, Ok(vec![]), "it is answered");
    assert_eq!(take(&node, "tenant").await, 33, "what was given up does not come");
    assert_eq!(take(&node, "other").await, 2, "the other series goes on");
    node.sync_series().await.unwrap();
    assert_eq!(given_up(&memory).len(), 1, "nothing is reported twice");
}

#[tokio::test]
async fn a_recall_is_answered_only_once_the_range_that_is_on_its_way_was_given_up_too() {
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
    let following = tokio::spawn({
        let node = node.clone();
        async move { node.sync_series().await.map(drop) }
    });
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(!following.is_finished(), "a range may still arrive");
    assert_eq!(store.recalls().await.unwrap().len(), 1);
    // The first grant is recalled, the second is for the caller that waits.
    store.let_through(2);
    following.await.unwrap().unwrap();
    assert_eq!(store.recalls().await, Ok(vec![]));
    assert_eq!(given_up(&memory), [("tenant".to_owned(), lease(1, 33))]);
    assert_eq!(waiting.await.unwrap(), 33);
}

/// The store would count it as handed out.
#[tokio::test]
async fn what_was_given_up_counts_as_held_until_it_is_reported() {
    let memory = Arc::new(MemoryStore::shared());
    let store = Arc::new(memory.gated_node());
    let node = node(&store).await;
    store.let_through(1);
    for number in 1..=25 {
        assert_eq!(take(&node, "tenant").await, number);
    }
    // The watermark is reached: the next range is on its way when the first is recalled.
    while store.counts().len() < 2 {
        tokio::task::yield_now().await;
    }
    memory.recall("tenant".parse().unwrap()).await.unwrap();
    let following = tokio::spawn({
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
    // The grant that is recalled and the one for the caller that waits.
    store.let_through(2);
    waiting.await.unwrap();
    following.await.unwrap().unwrap();
    let told = store.held_from();
    assert_eq!(told.get(2), Some(&Some(26)), "26 to 32 were given up, and not reported yet: {told:?}");
}

#[tokio::test]
async fn a_recall_of_a_series_that_no_process_holds_anything_of_waits_for_nothing() {
    let memory = Arc::new(MemoryStore::shared());
    let node = node(&Arc::new(memory.node())).await;
    let recalled = node.recall(&"tenant".parse().unwrap(), Duration::from_hours(1)).await.unwrap();
    assert!(recalled.silent.is_empty());
    assert_eq!(memory.recalls().await, Ok(vec![]));
}
