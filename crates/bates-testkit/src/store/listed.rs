//! The part of the conformance suite about what a list is limited to: a set of series, and some values of scopes.

use bates_core::store::prelude::*;
use bates_core::{
    AuditFilter, AuditRecord, ClientLease, ClientLeaseFilter, DocumentFilter, GapFilter, GapReason,
    MissingRange, ScopeFilter, ScopeId, ScopeKey, SeriesSet, Store, UsedLeases,
};

use super::audit::record;
use super::client_leases::client_lease;
use super::exercise::{DataSet, definition, grant, range, request, scope_id, series};
use super::outbox::document;

/// Names that differ where a pattern of SQL would see a wildcard.
const NAMES: [&str; 5] = ["acme.a_b", "acme.axb", "acme_b", "acmex.a_b", "other"];

fn set(patterns: &[&str]) -> SeriesSet {
    SeriesSet::Patterns(patterns.iter().map(|pattern| pattern.parse().expect("a pattern")).collect())
}

/// The names of the series in each list that the set shows.
async fn shown<S: Store>(store: &S, among: SeriesSet) -> [Vec<String>; 4] {
    let name = |scope_id: &ScopeId| scope_id.series.to_string();
    let filter = DocumentFilter { among: among.clone(), ..DocumentFilter::default() };
    let documents = store.documents(filter, None, 100).await.expect("a read");
    let filter = AuditFilter { among: among.clone(), ..AuditFilter::default() };
    let records = store.records(filter, None, 100).await.expect("a read");
    let filter = ClientLeaseFilter { among: among.clone(), ..ClientLeaseFilter::default() };
    let leases = store.client_leases(filter, None, 100).await.expect("a read");
    let gaps = store.gaps(GapFilter { among, ..GapFilter::default() }, None, 100).await.expect("a read");
    let mut lists = [
        documents.iter().map(|document| name(&document.scope_id)).collect::<Vec<_>>(),
        records.iter().map(|record| name(&record.scope_id)).collect(),
        leases.iter().map(|lease| name(&lease.scope_id)).collect(),
        gaps.iter().map(|gap| name(&gap.scope_id)).collect(),
    ];
    for list in &mut lists {
        list.sort();
    }
    lists
}

pub async fn lists_show_only_the_series_of_a_set<D: DataSet>(data: &D) {
    let store = data.open().await;
    for name in NAMES {
        store.pin(definition(name), None).await.expect("a first pin");
        let scope_id = ScopeId { series: series(name), ..scope_id("a") };
        grant(&store, request(scope_id.clone(), 50)).await;
        let assign = bates_core::AssignRequest { scope_id: scope_id.clone(), ..document("a") };
        store.assign(assign).await.expect("a number");
        let record = AuditRecord { scope_id: scope_id.clone(), ..record("a", (1, 2), "shop", 0) };
        store.record(vec![record]).await.expect("a write");
        let lease = ClientLease { scope_id: scope_id.clone(), ..client_lease("a", &[(1001, 1002)]) };
        store.put_client_lease(lease, UsedLeases::default()).await.expect("a write");
        let missing = MissingRange { range: range(1005, 1007), reason: GapReason::CrashSkip };
        store.replace_gaps(scope_id.series, vec![(scope_id.scope, vec![missing])]).await.expect("a write");
    }
    let cases: [(SeriesSet, &[&str]); 5] = [
        (SeriesSet::All, &NAMES),
        (set(&["acme.*"]), &["acme.a_b", "acme.axb"]),
        (set(&["acme.a_b"]), &["acme.a_b"]),
        (set(&["acme_b", "other"]), &["acme_b", "other"]),
        (set(&["acme", "none.*"]), &[]),
    ];
    for (among, expected) in cases {
        let lists = shown(&store, among.clone()).await;
        assert!(lists.iter().all(|list| list == expected), "{among:?}: {lists:?}");
    }
}

/// Values that would break a text in JSON or a pattern of SQL.
const SCOPES: [&str; 5] = ["a=1 b=2 @2026", "a=1 b=3 @2027", "a=11 b=2 @2026", "a=\"\\ b=%", "aa=1"];

pub async fn lists_show_only_scopes_with_the_values_of_a_filter<D: DataSet>(data: &D) {
    let store = data.open().await;
    store.pin(definition("document"), None).await.expect("a first pin");
    for scope in SCOPES {
        let scope_id = ScopeId { scope: ScopeKey::from_store(scope), ..scope_id("a") };
        let record = AuditRecord { scope_id: scope_id.clone(), ..record("a", (1, 2), "shop", 0) };
        store.record(vec![record]).await.expect("a write");
        let missing = MissingRange { range: range(1005, 1007), reason: GapReason::CrashSkip };
        store.replace_gaps(scope_id.series, vec![(scope_id.scope, vec![missing])]).await.expect("a write");
    }
    let having = |words: &str| ScopeFilter::having(ScopeKey::from_store(words));
    for (filter, expected) in [
        (having("a=1"), &SCOPES[..2]),
        (having("b=2 @2026"), &[SCOPES[0], SCOPES[2]]),
        (having("@2027"), &SCOPES[1..2]),
        (having("a=\"\\"), &SCOPES[3..4]),
        (having("b=%"), &SCOPES[3..4]),
        (having("=1"), &[]),
        (ScopeKey::from_store(SCOPES[1]).into(), &SCOPES[1..2]),
        (ScopeKey::from_store("a=1").into(), &[]),
    ] {
        let scope = Some(filter);
        let gaps = GapFilter { scope: scope.clone(), ..GapFilter::default() };
        let gaps = store.gaps(gaps, None, 100).await.expect("a read");
        let records = AuditFilter { scope: scope.clone(), ..AuditFilter::default() };
        let records = store.records(records, None, 100).await.expect("a read");
        let gaps = gaps.iter().map(|gap| gap.scope_id.scope.as_str());
        let records = records.iter().map(|record| record.scope_id.scope.as_str());
        for mut shown in [gaps.collect::<Vec<_>>(), records.collect()] {
            shown.sort_by_key(|scope| SCOPES.iter().position(|known| known == scope));
            assert_eq!(shown, expected, "{scope:?}");
        }
    }
}
