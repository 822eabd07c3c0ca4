//! A number of an audited series is recorded under its caller before it is answered, or is not answered.

use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    Actor, AuditFilter, AuditPolicy, AuditRecord, Channel, Machine, MachineError, SeriesSpec, SystemRuntime,
};
use bates_pattern::Reject;
use bates_testkit::MemoryStore;

use super::machine::spec;

type Numbering = Machine<MemoryStore>;

const ON: AuditPolicy = AuditPolicy::On(None);

fn audited(spec: SeriesSpec) -> SeriesSpec {
    SeriesSpec { audit: ON, ..spec }
}

async fn open(specs: Vec<SeriesSpec>) -> (Numbering, Arc<MemoryStore>) {
    let store = Arc::new(MemoryStore::default());
    (Machine::open(store.clone(), specs, Arc::new(SystemRuntime)).await.unwrap(), store)
}

async fn records(store: &Arc<MemoryStore>) -> Vec<AuditRecord> {
    store.records(AuditFilter::default(), None, 1_000).await.unwrap()
}

#[tokio::test]
async fn a_batch_of_numbers_or_an_increment_is_one_record() {
    let (machine, store) =
        open(vec![audited(spec("n", "N-{seq}", Some("n"))), spec("m", "{seq}", None)]).await;
    let entry = machine.series("n").unwrap();
    let actor = Actor::http("registry");
    let numbers = machine.next(&entry, (&[]).into(), 10_000, actor).await.unwrap();
    let found = records(&store).await;
    assert_eq!(found.len(), 1, "adjacent ranges are recorded as one: {found:?}");
    let AuditRecord { range, first, last, count, stamp, .. } = &found[0];
    assert_eq!((range.from(), range.to(), *count), (1, 10_001, 10_000));
    assert_eq!(
        (&**first, &**last, &*stamp.caller, stamp.channel),
        ("N-1", "N-10000", "registry", Channel::Http)
    );
    assert_eq!(numbers.len(), 10_000);
    assert!(
        machine.try_next_by_key(&entry, "n", 1, &mut String::new()).is_none(),
        "an audited number cannot be issued without waiting"
    );
    let taken = machine.take(&entry, (&[]).into(), 5, Actor::resp("10.0.0.7")).await.unwrap();
    let found = records(&store).await;
    assert_eq!((found.len(), found[1].range.to() - 1, &*found[1].last), (2, taken.last(), "N-10005"));
    machine.next(&machine.series("m").unwrap(), (&[]).into(), 5, actor).await.unwrap();
    assert_eq!(records(&store).await.len(), 2, "other series are not recorded");
}

#[tokio::test]
async fn the_audit_finds_the_caller_of_every_number_of_a_shuffled_series_with_rules() {
    let reject = Reject::default().with_digits("openg2p".parse().unwrap());
    let farmer = SeriesSpec { shuffled: true, reject, ..spec("farmer", "{seq:11}{check:verhoeff}", None) };
    let (machine, store) = open(vec![audited(farmer)]).await;
    let entry = machine.series("farmer").unwrap();
    for (caller, count) in [("a", 1), ("b", 100), ("a", 7), ("c", 3)] {
        let numbers = machine.next(&entry, (&[]).into(), count, Actor::http(caller)).await.unwrap();
        for (_, number) in numbers.iter() {
            let (scope, position) = entry.locate(number).unwrap();
            let filter = AuditFilter {
                scope: scope.map(Into::into),
                position: Some(position),
                ..AuditFilter::default()
            };
            let found = machine.records(filter, None, 10).await.unwrap();
            assert_eq!(
                found.iter().map(|record| &*record.stamp.caller).collect::<Vec<_>>(),
                [caller],
                "{number}"
            );
        }
    }
    let found = records(&store).await;
    assert_eq!(
        found.iter().map(|record| record.count).sum::<u64>(),
        111,
        "each number is counted once: {found:?}"
    );
    assert!(found.iter().all(|record| record.count <= record.range.count()));
}

#[tokio::test]
async fn a_number_that_cannot_be_recorded_is_never_answered() {
    let (machine, store) = open(vec![audited(spec("n", "{seq}", None))]).await;
    let entry = machine.series("n").unwrap();
    store.refuse_records(true);
    let refused = [
        machine.next(&entry, (&[]).into(), 3, Actor::http("a")).await.unwrap_err(),
        machine.take(&entry, (&[]).into(), 3, Actor::resp("a")).await.unwrap_err(),
    ];
    for refused in refused {
        assert_eq!((refused.code().name(), refused.code().may_burn()), ("store_unavailable", true));
        assert!(refused.to_string().contains("could not be recorded in the audit"), "{refused}");
    }
    assert_eq!(entry.counts().issued(), 0);
    store.refuse_records(false);
    let numbers = machine.next(&entry, (&[]).into(), 1, Actor::http("a")).await.unwrap();
    assert_eq!(numbers.values().collect::<Vec<_>>(), ["7"]);
}

#[tokio::test]
async fn an_audit_is_switched_on_and_off_at_run_time() {
    let (machine, store) = open(vec![]).await;
    let tenant = |audit| SeriesSpec { audit, ..spec("tenant", "T-{seq}", Some("tenant")) };
    let amend = async |audit| {
        let change = |_: &SeriesSpec| Ok::<_, MachineError>(tenant(audit));
        machine.change_series(&"tenant".parse().unwrap(), change, Actor::library("test")).await.unwrap();
    };
    machine.create_series(tenant(AuditPolicy::Off), Actor::library("test")).await.unwrap();
    let before = machine.series("tenant").unwrap();
    machine.next(&before, (&[]).into(), 1, Actor::http("a")).await.unwrap();
    amend(ON).await;
    // A caller that found the series before the change is served by its replacement.
    assert!(machine.try_next_by_key(&before, "tenant", 1, &mut String::new()).is_none());
    machine.next(&before, (&[]).into(), 1, Actor::http("b")).await.unwrap();
    machine.take(&before, (&[]).into(), 1, Actor::resp("c")).await.unwrap();
    amend(AuditPolicy::Off).await;
    let after = machine.series("tenant").unwrap();
    machine.next(&after, (&[]).into(), 1, Actor::http("d")).await.unwrap();
    let callers: Vec<_> = records(&store).await.into_iter().map(|record| record.stamp.caller).collect();
    assert_eq!(callers, ["b".into(), "c".into()]);
}

#[tokio::test]
async fn records_are_pruned_after_the_retention_of_their_series() {
    let audited = |name, audit| SeriesSpec { audit, ..spec(name, "{seq}", None) };
    let long = AuditPolicy::On(Some(Duration::from_hours(1)));
    let short = AuditPolicy::On(Some(Duration::ZERO));
    let (machine, store) =
        open(vec![audited("ever", ON), audited("long", long), audited("short", short)]).await;
    for name in ["ever", "long", "short"] {
        machine.next(&machine.series(name).unwrap(), (&[]).into(), 1, Actor::http("a")).await.unwrap();
    }
    assert_eq!(machine.prune_records().await, Ok(1));
    let left: Vec<_> = records(&store).await.into_iter().map(|record| record.scope_id.series).collect();
    assert_eq!(left.iter().map(bates_core::SeriesName::as_str).collect::<Vec<_>>(), ["ever", "long"]);
}
