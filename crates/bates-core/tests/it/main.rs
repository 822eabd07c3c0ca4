//! Tests of the public API of the core, on a store in memory that can fail, stall and lose its history.
#![allow(clippy::unwrap_used)]

mod audit;
mod change;
mod dispenser;
mod history;
mod machine;
mod periods;
mod pools;
mod recall;
mod reconciliation;
mod relay;
mod runs;
mod sync_series;

use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{Definition, Dispenser, Limits, Promise, ScopeKey, Series};
use bates_pattern::{Options, Pattern, Position};
use bates_testkit::MemoryStore;

pub(crate) fn series(template: &str, promise: Promise, limits: Limits) -> Series {
    let pattern = Pattern::compile(template, Options::default()).unwrap();
    Series::new("counter".parse().unwrap(), pattern, promise, Position::new(1).unwrap(), limits)
}

pub(crate) fn counter(promise: Promise) -> Series {
    series("{seq}", promise, Limits::default())
}

pub(crate) fn scope(name: &str) -> ScopeKey {
    ScopeKey::new([("name", name)], None).unwrap()
}

/// Opens a node of the store, with the series `counter` pinned.
pub(crate) async fn open_node(store: &Arc<MemoryStore>) -> Arc<MemoryStore> {
    pin(store).await;
    Arc::new(store.node())
}

/// Like [`open_node`]; its grants wait until the test lets them through.
pub(crate) async fn open_gated_node(store: &Arc<MemoryStore>) -> Arc<MemoryStore> {
    pin(store).await;
    Arc::new(store.gated_node())
}

async fn pin(store: &Arc<MemoryStore>) {
    let definition = Definition {
        series: "counter".parse().unwrap(),
        template: "{seq}".into(),
        parameters: "name".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
        rules: None,
    };
    store.pin(definition, None).await.unwrap();
}

pub(crate) async fn take(
    dispenser: &Dispenser<MemoryStore>,
    series: &Series,
    name: &str,
    count: u64,
) -> Vec<u64> {
    dispenser.take(series, &scope(name), count).await.unwrap().positions().collect()
}
