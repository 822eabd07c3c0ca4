//! Series are created, changed, retired and created again while the machine runs, and no number repeats.

use std::collections::HashSet;
use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{
    Actor, CreateOutcome, Limits, ListValue, Machine, MachineError, Promise, SeriesSpec, SystemRuntime,
};
use bates_pattern::{Position, Reject, Reset};
use bates_testkit::MemoryStore;

use super::machine::spec;

type Numbering = Machine<MemoryStore>;

fn without(words: &[&str]) -> Reject {
    Reject::default().with_restricted(words).unwrap()
}

fn tenant() -> SeriesSpec {
    SeriesSpec { description: "tenant".into(), ..spec("tenant", "T-{seq}", Some("tenant")) }
}

async fn open(store: &Arc<MemoryStore>) -> Numbering {
    let fixed = spec("fixed", "{seq}", Some("fixed:{name}"));
    Machine::open(store.clone(), vec![fixed], Arc::new(SystemRuntime)).await.unwrap()
}

async fn take(machine: &Numbering, count: u64) -> Vec<String> {
    let entry = machine.series("tenant").unwrap();
    let numbers = machine.next(&entry, (&[]).into(), count, Actor::library("test")).await.unwrap();
    numbers.values().map(str::to_owned).collect()
}

async fn amend(machine: &Numbering, spec: SeriesSpec) -> Result<(), MachineError> {
    machine.change_series(&spec.name.clone(), |_| Ok(spec), Actor::library("test")).await
}

async fn code_of(outcome: impl Future<Output = Result<CreateOutcome, MachineError>>) -> &'static str {
    outcome.await.unwrap_err().code().name()
}

#[tokio::test]
async fn a_retired_series_that_is_created_again_continues_its_numbers() {
    let store: Arc<MemoryStore> = Arc::default();
    let machine = open(&store).await;
    assert_eq!(
        machine.create_series(tenant(), Actor::library("test")).await.unwrap(),
        CreateOutcome::Created
    );
    assert_eq!(
        machine.create_series(tenant(), Actor::library("test")).await.unwrap(),
        CreateOutcome::Existed
    );
    assert_eq!(take(&machine, 2).await, ["T-1", "T-2"]);
    let held = machine.series("tenant").unwrap();
    machine.retire_series(&"tenant".parse().unwrap(), Actor::library("test")).await.unwrap();
    assert!(machine.series("tenant").is_none() && machine.series_by_key("tenant").is_none());
    // A request that found the series before it was retired gets nothing more.
    let late = machine.next(&held, (&[]).into(), 1, Actor::library("test")).await.unwrap_err();
    assert_eq!(late.code().name(), "unknown_series");
    assert!(machine.try_next_by_key(&held, "tenant", 1, &mut String::new()).is_none());
    assert_eq!(
        machine.create_series(tenant(), Actor::library("test")).await.unwrap(),
        CreateOutcome::Created
    );
    assert_eq!(take(&machine, 1).await, ["T-3"], "the retired series returned its unused positions");
}

#[tokio::test]
async fn a_retired_series_cannot_be_created_again_with_another_text() {
    let machine = open(&Arc::default()).await;
    machine.create_series(tenant(), Actor::library("test")).await.unwrap();
    machine.retire_series(&"tenant".parse().unwrap(), Actor::library("test")).await.unwrap();
    for changed in [
        SeriesSpec { template: "U-{seq}".into(), ..tenant() },
        SeriesSpec { start: Position::new(7), ..tenant() },
        SeriesSpec { template: "{date:%Y}-{seq}".into(), reset: Reset::Yearly, ..tenant() },
    ] {
        assert_eq!(code_of(machine.create_series(changed, Actor::library("test"))).await, "series_pinned");
        assert!(machine.series("tenant").is_none(), "a refusal changes nothing");
    }
    machine.create_series(tenant(), Actor::library("test")).await.unwrap();
}

#[tokio::test]
async fn a_series_of_the_configuration_cannot_be_changed_at_run_time() {
    let machine = open(&Arc::default()).await;
    assert_eq!(
        code_of(machine.create_series(spec("fixed", "{seq}", None), Actor::library("test"))).await,
        "series_in_file"
    );
    let retired = machine.retire_series(&"fixed".parse().unwrap(), Actor::library("test")).await;
    assert_eq!(retired.unwrap_err().code().name(), "series_in_file");
    let amended = amend(&machine, spec("fixed", "{seq}", None)).await;
    assert_eq!(amended.unwrap_err().code().name(), "series_in_file");
    let unknown = machine.retire_series(&"never".parse().unwrap(), Actor::library("test")).await;
    assert_eq!(unknown.unwrap_err().code().name(), "unknown_series");
}

#[tokio::test]
async fn bad_descriptions_are_refused_and_change_nothing() {
    let store: Arc<MemoryStore> = Arc::default();
    let machine = open(&store).await;
    machine.create_series(tenant(), Actor::library("test")).await.unwrap();
    for (bad, code) in [
        (SeriesSpec { description: "another".into(), ..tenant() }, "series_exists"),
        (spec("other", "{seq", None), "bad_series"),
        (spec("other", "{seq:99999}", None), "bad_series"),
        (SeriesSpec { start: Position::new(100), ..spec("other", "{seq:2}", None) }, "bad_series"),
        (
            SeriesSpec {
                limits: Limits { lease_min: 0, ..Limits::default() },
                ..spec("other", "{seq}", None)
            },
            "bad_series",
        ),
        (spec("other", "{seq}", Some("fixed:{x}")), "keys_meet"),
        (spec("other", "{seq}", Some("tenant")), "keys_meet"),
        (SeriesSpec { shuffled: true, ..spec("other", "{seq}", None) }, "bad_series"),
        (
            SeriesSpec { shuffled: true, promise: Promise::Ordered, ..spec("other", "{seq:4}", None) },
            "bad_series",
        ),
        (
            SeriesSpec {
                reject: without(&["7"]),
                promise: Promise::Gapless,
                ..spec("other", "{seq:4}", None)
            },
            "bad_series",
        ),
        (
            SeriesSpec {
                reject: without(&["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
                ..spec("other", "{seq:4}", None)
            },
            "bad_series",
        ),
    ] {
        assert_eq!(
            code_of(machine.create_series(bad.clone(), Actor::library("test"))).await,
            code,
            "{bad:?}"
        );
    }
    let descriptions = store.descriptions().await.unwrap();
    assert_eq!(descriptions.len(), 1, "{descriptions:?}");
    // The refused descriptions were not pinned either.
    machine.create_series(spec("other", "{seq:3}", None), Actor::library("test")).await.unwrap();
}

#[tokio::test]
async fn limits_and_rules_change_under_load_and_no_number_repeats() {
    let machine = Arc::new(open(&Arc::default()).await);
    machine.create_series(tenant(), Actor::library("test")).await.unwrap();
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let machine = machine.clone();
            tokio::spawn(async move {
                let mut taken = Vec::new();
                for _ in 0..200 {
                    taken.extend(take(&machine, 3).await);
                    tokio::task::yield_now().await;
                }
                taken
            })
        })
        .collect();
    for round in 1..20 {
        let limits = Limits { lease_max: 32 * round, ..Limits::default() };
        let reject = Reject::default().with_restricted(&[round.to_string()]).unwrap();
        amend(&machine, SeriesSpec { limits, reject, ..tenant() }).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut seen = HashSet::new();
    for taker in takers {
        for number in taker.await.unwrap() {
            assert!(seen.insert(number.clone()), "{number} was issued twice");
        }
    }
    assert_eq!(seen.len(), 8 * 200 * 3);
    for other in [SeriesSpec { value: ListValue::Seq, ..tenant() }, SeriesSpec { key: None, ..tenant() }] {
        assert_eq!(amend(&machine, other).await.unwrap_err().code().name(), "series_exists");
    }
}

#[tokio::test]
async fn find_traces_a_number_to_its_series_scope_and_position() {
    let machine = open(&Arc::default()).await;
    let document = spec("document", "{project}-{seq}", Some("d:{project}"));
    machine
        .create_series(SeriesSpec { value: ListValue::Seq, ..document }, Actor::library("test"))
        .await
        .unwrap();
    let entry = machine.series("document").unwrap();
    let numbers =
        machine.next(&entry, (&[("project", "P")]).into(), 2, Actor::library("test")).await.unwrap();
    assert_eq!(numbers.values().collect::<Vec<_>>(), ["1", "2"], "the bare sequence part");
    assert_eq!(numbers.iter().next().unwrap().1, "P-1", "and the whole number");
    let found = machine.find("P-2", false).await.unwrap();
    assert_eq!(found.len(), 1);
    let (position, granted) = (found[0].position.unwrap().value(), found[0].granted);
    assert_eq!(
        (position, granted, &*found[0].parameters),
        (2, Some(true), &[("project".into(), "P".into())][..])
    );
    for (id, granted) in [("P-0", Some(false)), ("P-33", Some(false)), ("Q-1", Some(false))] {
        assert_eq!(machine.find(id, false).await.unwrap()[0].granted, granted, "{id}");
    }
    // A number that does not show its scope could belong to any scope.
    let bare = machine.find("7", false).await.unwrap();
    assert_eq!((bare.len(), bare[0].granted), (1, None));
    assert!(machine.find("nothing like it", false).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_changed_series_returns_its_ranges_before_the_change_is_answered() {
    let machine = open(&Arc::default()).await;
    machine.create_series(tenant(), Actor::library("test")).await.unwrap();
    let before = machine.series("tenant").unwrap();
    take(&machine, 1).await;
    assert_eq!(machine.levels()[before.series().name()].held, 31);
    let limits = Limits { lease_min: 2, lease_max: 2, ..Limits::default() };
    amend(&machine, SeriesSpec { limits, ..tenant() }).await.unwrap();
    assert!(!machine.levels().contains_key(before.series().name()), "nothing is held under the old limits");
    // A caller that found the series before the change is served by its replacement.
    let late = machine.next(&before, (&[]).into(), 1, Actor::library("test")).await.unwrap();
    assert_eq!(late.values().collect::<Vec<_>>(), ["T-2"]);
    assert_eq!(machine.levels()[before.series().name()].held, 1, "under the new limits");
}

/// A caller may have lost its rights while it waited for the changes of others.
#[tokio::test]
async fn a_change_that_is_not_admitted_when_its_turn_comes_changes_nothing() {
    let machine = open(&Arc::default()).await;
    let actor = Actor::library("test");
    let refused = || MachineError::TooMany(0);
    let created = machine.create_series_if(tenant(), |_| Err(refused()), actor).await;
    assert!(created == Err(refused()) && machine.series("tenant").is_none());
    machine.create_series_if(tenant(), |_| Ok::<_, MachineError>(()), actor).await.unwrap();
    let retired = machine.retire_series_if(&"tenant".parse().unwrap(), || Err(refused()), actor).await;
    assert!(retired.is_err_and(|error| error == refused()) && machine.series("tenant").is_some());
}

#[tokio::test]
async fn concurrent_changes_all_take_effect() {
    let machine = Arc::new(open(&Arc::default()).await);
    machine.create_series(tenant(), Actor::library("test")).await.unwrap();
    let changes: Vec<_> = (0..20_u64)
        .map(|_| {
            let machine = machine.clone();
            tokio::spawn(async move {
                let name = "tenant".parse().unwrap();
                let increment = |spec: &SeriesSpec| {
                    let limits = Limits { lease_max: spec.limits.lease_max + 1, ..spec.limits };
                    Ok::<_, MachineError>(SeriesSpec { limits, ..spec.clone() })
                };
                machine.change_series(&name, increment, Actor::library("test")).await.unwrap();
            })
        })
        .collect();
    for change in changes {
        change.await.unwrap();
    }
    let expected = Limits::default().lease_max + 20;
    assert_eq!(machine.series("tenant").unwrap().spec().limits.lease_max, expected);
}

#[tokio::test]
async fn a_floor_below_the_start_of_a_new_scope_lowers_nothing() {
    let machine = open(&Arc::default()).await;
    let start = Position::new(1001);
    machine.create_series(SeriesSpec { start, ..tenant() }, Actor::library("test")).await.unwrap();
    let entry = machine.series("tenant").unwrap();
    assert_eq!(machine.raise_floor(&entry, (&[]).into(), 5, Actor::library("test")).await, Ok(1001));
    assert_eq!(take(&machine, 1).await, ["T-1001"]);
}

/// A series with this many restricted words.
fn worded(name: &str, count: usize) -> SeriesSpec {
    let words: Vec<String> = (0..count).map(|number| format!("{number:05}")).collect();
    let reject = Reject::default().with_restricted(&words).unwrap();
    SeriesSpec { reject, description: format!("{count} words").into(), ..spec(name, "{seq:9}", None) }
}

#[tokio::test]
async fn restricted_words_of_all_series_together_have_a_limit() {
    let store: Arc<MemoryStore> = Arc::default();
    let machine = open(&store).await;
    for number in 0..20 {
        machine
            .create_series(worded(&format!("full-{number}"), 10_000), Actor::library("test"))
            .await
            .unwrap();
    }
    let refused = machine.create_series(worded("one-more", 1), Actor::library("test")).await.unwrap_err();
    assert_eq!(refused.code().name(), "too_many_words");
    let expected = "with 1 restricted words of series \"one-more\" all series together would have 200001; the limit is 200000";
    assert_eq!(refused.to_string(), expected);
    machine.create_series(worded("none", 0), Actor::library("test")).await.unwrap();
    assert_eq!(amend(&machine, worded("none", 1)).await.unwrap_err().code().name(), "too_many_words");
    amend(&machine, worded("full-0", 9_999)).await.unwrap();
    amend(&machine, worded("none", 1)).await.unwrap();
    assert!(matches!(amend(&machine, worded("none", 2)).await, Err(MachineError::TooManyWords { .. })));
}

#[tokio::test]
async fn series_of_the_configuration_open_beyond_the_limit_of_words() {
    let store: Arc<MemoryStore> = Arc::default();
    let specs: Vec<_> = (0..21).map(|number| worded(&format!("full-{number}"), 10_000)).collect();
    let machine = Machine::open(store, specs, Arc::new(SystemRuntime)).await.unwrap();
    assert_eq!(
        code_of(machine.create_series(worded("one-more", 1), Actor::library("test"))).await,
        "too_many_words"
    );
    machine.create_series(worded("none", 0), Actor::library("test")).await.unwrap();
}
