//! The part of the conformance suite about the audit: which caller took which numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{Actor, AuditFilter, AuditRecord, Channel, Position, Store};
use jiff::Timestamp;
use uuid::Uuid;

use super::exercise::{DataSet, definition, open_pinned, range, scope_id, series};
use super::outbox::{document, keyed_document};

pub(super) fn moment(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(1_790_000_000_000_000 + micros).expect("a time")
}

pub(super) fn record(scope: &str, (from, to): (u64, u64), caller: &str, micros: i64) -> AuditRecord {
    AuditRecord {
        id: Uuid::now_v7(),
        scope_id: scope_id(scope),
        range: range(from, to),
        first: format!("{scope}-{from}").into(),
        last: format!("{scope}-{}", to - 1).into(),
        count: to - from,
        stamp: Actor { caller, channel: Channel::Http }.stamp(moment(micros)),
    }
}

/// More than two pages of a move, some of them at the same moment.
pub(super) async fn fill_records<S: Store>(store: &S) {
    let records = (0..2_345).map(|at: u64| {
        let micros = i64::try_from(at / 10).expect("a small number");
        record("a", (at, at + 1), if at.is_multiple_of(2) { "even" } else { "odd" }, micros)
    });
    store.record(records.collect()).await.expect("a write");
}

/// All records that [`fill_records`] wrote.
pub(super) async fn read_filled_records<S: Store>(store: &S) -> Vec<AuditRecord> {
    let records = all(store, AuditFilter::default()).await;
    assert_eq!(records.len(), 2_345);
    records
}

async fn all<S: Store>(store: &S, filter: AuditFilter) -> Vec<AuditRecord> {
    store.records(filter, None, 100_000).await.expect("a read")
}

fn ids(records: &[AuditRecord]) -> BTreeSet<Uuid> {
    records.iter().map(|record| record.id).collect()
}

pub async fn records_survive_reopening_and_are_stored_once<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let unusual = AuditRecord {
        first: "é \"1\"".into(),
        count: 3,
        stamp: Actor { caller: "pool id-pool:a:{b}", channel: Channel::Pool }.stamp(moment(7)),
        ..record("", (5, 9), "x", 0)
    };
    let written = vec![record("a", (1001, 2001), "registry", 0), unusual];
    store.record(written.clone()).await.expect("a write");
    store.record(written.clone()).await.expect("a repeated write");
    store.record(Vec::new()).await.expect("an empty write");
    drop(store);
    assert_eq!(all(&data.open().await, AuditFilter::default()).await, written);
}

pub async fn concurrent_records_are_all_stored<D: DataSet>(data: &D) {
    let store = Arc::new(open_pinned(data).await);
    let callers: Vec<_> = (0..300)
        .map(|caller: u64| {
            let store = store.clone();
            let at = 10 * caller;
            let records = vec![record("a", (at, at + 5), "one", 1), record("b", (at, at + 9), "two", 2)];
            tokio::spawn(async move {
                store.record(records.clone()).await.expect("a write");
                let filter = AuditFilter {
                    caller: Some("one".into()),
                    position: Position::new(at),
                    ..AuditFilter::default()
                };
                assert_eq!(all(&*store, filter).await, records[..1], "an answered record can be read");
                records
            })
        })
        .collect();
    let mut written = Vec::new();
    for caller in callers {
        written.extend(caller.await.expect("a caller ends"));
    }
    assert_eq!(ids(&all(&*store, AuditFilter::default()).await), ids(&written));
}

pub async fn records_are_found_by_series_scope_caller_and_time<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    store.pin(definition("other"), None).await.expect("a pin");
    let mut other = record("a", (1, 2), "registry", 30);
    other.scope_id.series = series("other");
    let written = [
        record("a", (1, 2), "registry", 10),
        record("b", (1, 3), "10.0.0.7", 20),
        other,
        record("a", (2, 4), "10.0.0.7", 40),
    ];
    store.record(written.to_vec()).await.expect("a write");
    let none = AuditFilter::default;
    for (filter, expected) in [
        (none(), vec![0, 1, 2, 3]),
        (AuditFilter { series: Some(series("document")), ..none() }, vec![0, 1, 3]),
        (AuditFilter { series: Some(series("absent")), ..none() }, vec![]),
        (AuditFilter { scope: Some(scope_id("a").scope.into()), ..none() }, vec![0, 2, 3]),
        (AuditFilter { caller: Some("registry".into()), ..none() }, vec![0, 2]),
        (AuditFilter { caller: Some("10.0.0.7".into()), since: Some(moment(21)), ..none() }, vec![3]),
        (AuditFilter { since: Some(moment(20)), until: Some(moment(40)), ..none() }, vec![1, 2]),
        (AuditFilter { until: Some(moment(10)), ..none() }, vec![]),
    ] {
        let expected: Vec<AuditRecord> = expected.into_iter().map(|at: usize| written[at].clone()).collect();
        assert_eq!(all(&store, filter.clone()).await, expected, "{filter:?}");
    }
}

pub async fn the_record_that_covers_a_position_is_found<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let written =
        [record("a", (1, 5), "one", 3), record("a", (5, 6), "two", 1), record("a", (8, 20), "three", 2)];
    store.record(written.to_vec()).await.expect("a write");
    store.record(vec![record("b", (0, 100), "four", 9)]).await.expect("a write");
    let of_a = |position| AuditFilter {
        series: Some(series("document")),
        scope: Some(scope_id("a").scope.into()),
        position: Position::new(position),
        ..AuditFilter::default()
    };
    for (position, expected) in [
        (0, None),
        (1, Some(0)),
        (4, Some(0)),
        (5, Some(1)),
        (6, None),
        (8, Some(2)),
        (19, Some(2)),
        (20, None),
    ] {
        let expected: Vec<AuditRecord> = expected.map(|at: usize| written[at].clone()).into_iter().collect();
        assert_eq!(all(&store, of_a(position)).await, expected, "{position}");
    }
    let of_any = AuditFilter { scope: None, ..of_a(5) };
    let callers: Vec<_> = all(&store, of_any).await.into_iter().map(|record| record.stamp.caller).collect();
    assert_eq!(callers, ["two".into(), "four".into()], "without a scope, all scopes are searched");
}

pub async fn pages_of_records_are_complete_and_ordered_even_with_equal_times<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let written: Vec<AuditRecord> =
        (0..100).map(|at: u64| record("a", (at, at + 1), "one", i64::from(at > 50))).collect();
    store.record(written.clone()).await.expect("a write");
    for limit in [1, 7, 100, 101] {
        let (mut seen, mut after): (Vec<AuditRecord>, _) = (Vec::new(), None);
        loop {
            let page = store.records(AuditFilter::default(), after, limit).await.expect("a page");
            let Some(last) = page.last() else { break };
            after = Some((last.stamp.at, last.id));
            assert!(page.len() <= limit);
            // Later records come after all earlier ones and do not shift the pages.
            let at = i64::try_from(seen.len()).expect("a small number") + 10;
            store.record(vec![record("a", (500, 501), "late", at)]).await.expect("a write");
            seen.extend(page.into_iter().filter(|record| &*record.stamp.caller == "one"));
            if seen.len() == 100 {
                break;
            }
        }
        assert!(seen.is_sorted_by_key(|record| (record.stamp.at, record.id)), "by pages of {limit}");
        assert_eq!((seen.len(), ids(&seen)), (100, ids(&written)), "by pages of {limit}");
    }
}

pub async fn pruning_removes_only_old_records_of_one_series<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    store.pin(definition("other"), None).await.expect("a pin");
    let mut other = record("a", (1, 2), "one", 0);
    other.scope_id.series = series("other");
    let written: Vec<AuditRecord> = (0..10)
        .map(|at: u64| record("a", (at, at + 1), "one", i64::try_from(at).expect("a small number")))
        .collect();
    store.record(written.clone()).await.expect("a write");
    store.record(vec![other.clone()]).await.expect("a write");
    let prune = async |before, limit| {
        store.prune_records(series("document"), moment(before), limit).await.expect("a write")
    };
    assert_eq!(
        (prune(0, 100).await, prune(4, 3).await, prune(4, 3).await),
        (0, 3, 1),
        "at most as many as the limit"
    );
    let mut left = vec![other];
    left.extend_from_slice(&written[4..]);
    assert_eq!(all(&store, AuditFilter::default()).await, left);
}

pub async fn an_audited_document_is_recorded_once_in_its_own_commit<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let audited = |mut request: bates_core::AssignRequest, micros| {
        request.audit_stamp =
            Some(Actor { caller: "registry", channel: Channel::Document }.stamp(moment(micros)));
        request
    };
    store.assign(document("a")).await.expect("a number");
    assert_eq!(all(&store, AuditFilter::default()).await, [], "the request has no stamp");
    let first = store.assign(audited(keyed_document("a", "k", 1), 1)).await.expect("a number");
    let again = store.assign(audited(keyed_document("a", "k", 1), 2)).await.expect("a number");
    assert_eq!(
        (first.position.value(), first.is_new, again.position, again.is_new),
        (1002, true, first.position, false)
    );
    drop(store);
    let store = data.open().await;
    let found = all(&store, AuditFilter::default()).await;
    let records: Vec<_> =
        found.iter().map(|record| (record.range, &*record.first, record.stamp.at)).collect();
    assert_eq!(records, [(range(1002, 1003), &*first.number, moment(1))]);
    assert_eq!(
        (found[0].scope_id.clone(), found[0].count, found[0].stamp.channel),
        (scope_id("a"), 1, Channel::Document)
    );
    let refused = store.assign(bates_core::AssignRequest { end: 1003, ..audited(document("a"), 3) }).await;
    assert!(refused.is_err(), "the space has ended");
    assert_eq!(all(&store, AuditFilter::default()).await.len(), 1, "a refused document is not recorded");
}
