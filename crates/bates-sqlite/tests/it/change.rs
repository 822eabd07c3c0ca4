//! Series that are changed while they number documents: numbers keep ascending, and no request is refused.

use std::sync::Arc;
use std::time::Duration;

use bates_core::{
    Actor, DocumentContent, Limits, Machine, MachineError, Promise, ScopeParams, SeriesName, SeriesSpec,
    SystemRuntime,
};
use bates_sqlite::{OpenMode, SqliteStore};
use tempfile::TempDir;

type Numbering = Machine<SqliteStore>;

fn ordered() -> SeriesSpec {
    SeriesSpec {
        promise: Promise::Ordered,
        description: "ordered".into(),
        ..SeriesSpec::new("ordered".parse().unwrap(), "{seq}")
    }
}

async fn open() -> (TempDir, Numbering) {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path(), OpenMode::First).unwrap();
    let machine = Machine::open(Arc::new(store), vec![], Arc::new(SystemRuntime)).await.unwrap();
    machine.create_series(ordered(), Actor::library("test")).await.unwrap();
    (folder, machine)
}

async fn amend(machine: &Numbering) {
    let name: SeriesName = "ordered".parse().unwrap();
    let increment = |spec: &SeriesSpec| {
        let limits = Limits { lease_max: spec.limits.lease_max + 1, ..spec.limits };
        Ok::<_, MachineError>(SeriesSpec { limits, ..spec.clone() })
    };
    machine.change_series(&name, increment, Actor::library("test")).await.unwrap();
}

async fn next(machine: &Numbering) -> u64 {
    let entry = machine.series("ordered").unwrap();
    machine.take(&entry, ScopeParams::default(), 1, Actor::resp("test")).await.unwrap().last()
}

async fn reserve(machine: &Numbering, entry: &bates_core::SeriesEntry) -> u64 {
    let content = DocumentContent::Reservation(Duration::from_hours(1));
    machine.assign(entry, ScopeParams::default(), content, None, "test").await.unwrap().position.value()
}

fn held(machine: &Numbering) -> u64 {
    machine.levels().values().map(|level| level.held).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordered_series_with_reservations_is_never_held_in_memory_again() {
    let (_folder, machine) = open().await;
    assert_eq!(next(&machine).await, 1);
    assert_eq!(held(&machine), 31);
    let entry = machine.series("ordered").unwrap();
    assert_eq!(reserve(&machine, &entry).await, 2, "the range in memory was released");
    for expected in 3..10 {
        amend(&machine).await;
        assert_eq!(next(&machine).await, expected);
        assert_eq!(held(&machine), 0, "a call that found the old series may still take a number");
    }
    let name = "ordered".parse().unwrap();
    machine.retire_series(&name, Actor::library("test")).await.unwrap();
    machine.create_series(ordered(), Actor::library("test")).await.unwrap();
    assert_eq!(next(&machine).await, 10);
    assert_eq!(held(&machine), 0, "not even after it was retired and created again");
}

/// A request finds its series first, and takes a number only after it has read its body.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_found_its_series_before_a_change_is_numbered_after_it() {
    let (_folder, machine) = open().await;
    let before = machine.series("ordered").unwrap();
    amend(&machine).await;
    assert_eq!(reserve(&machine, &before).await, 1);
    amend(&machine).await;
    assert_eq!(reserve(&machine, &before).await, 2, "after two changes as well");
    assert_eq!(next(&machine).await, 3);
    machine.retire_series(&"ordered".parse().unwrap(), Actor::library("test")).await.unwrap();
    let content = DocumentContent::Reservation(Duration::from_hours(1));
    let refused = machine.assign(&before, ScopeParams::default(), content, None, "test").await.unwrap_err();
    assert_eq!(refused.code().name(), "unknown_series");
}
