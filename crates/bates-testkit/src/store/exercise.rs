//! The part of the conformance suite about grants, releases, floors and pinned series; and the requests and data that
//! all parts share.

use std::future::Future;

use bates_core::store::prelude::*;
use bates_core::{
    Cursor, Definition, Grant, GrantError, GrantPurpose, GrantRequest, Position, PositionRange,
    ReleaseOutcome, ReleaseRequest, ScopeId, ScopeKey, SeriesName, Store, StoreError,
};

/// Data that a store can be opened on again and again.
pub trait DataSet {
    /// The store.
    type Store: Store;

    /// Opens the store on this data. The caller has dropped the store that was open before.
    fn open(&self) -> impl Future<Output = Self::Store>;
}

pub(super) fn series(name: &str) -> SeriesName {
    name.parse().expect("a good name")
}

pub(crate) fn positions(values: impl IntoIterator<Item = u64>) -> Vec<Position> {
    values.into_iter().map(|value| Position::new(value).expect("a value below 2^53")).collect()
}

pub(super) fn scope_id(scope: &str) -> ScopeId {
    let scope =
        if scope.is_empty() { ScopeKey::new([], None) } else { ScopeKey::new([("scope", scope)], None) };
    ScopeId { series: series("document"), scope: scope.expect("a good scope") }
}

pub(super) fn definition(name: &str) -> Definition {
    Definition {
        series: series(name),
        template: "{scope}-{seq}".into(),
        parameters: "scope".into(),
        shuffled: false,
        start: 1001,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
        rules: None,
    }
}

pub(super) fn request(scope_id: ScopeId, count: u64) -> GrantRequest {
    let purpose = GrantPurpose::Hold;
    GrantRequest {
        scope_id,
        count,
        count_needed: count,
        start: 1001,
        end: 10_000,
        scopes_max: 100,
        purpose,
        promise: None,
        held_from: None,
    }
}

pub(super) fn range(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).expect("not empty")
}

pub(super) async fn open_pinned<D: DataSet>(data: &D) -> D::Store {
    let store = data.open().await;
    store.pin(definition("document"), None).await.expect("a first pin");
    store
}

pub(super) async fn grant<S: Store>(store: &S, request: GrantRequest) -> Grant {
    store.grant(request).await.expect("a grant")
}

pub(super) async fn next<S: Store>(store: &S, scope_id: ScopeId) -> Option<u64> {
    store.cursor(scope_id).await.expect("a read").map(|cursor| cursor.next)
}

pub async fn a_grant_survives_reopening<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let first = grant(&store, request(scope_id("a"), 32)).await;
    drop(store);
    let store = data.open().await;
    let second = grant(&store, request(scope_id("a"), 32)).await;
    assert_eq!(first.range.to(), second.range.from());
    assert!(first.version < second.version);
}

pub async fn grants_stop_exactly_at_the_end_of_the_space<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let near_end = |count, purpose| GrantRequest { end: 1_101, purpose, ..request(scope_id("a"), count) };
    assert_eq!(grant(&store, near_end(60, GrantPurpose::Hold)).await.range, range(1001, 1061));
    for all_or_none in [GrantPurpose::HandOut, GrantPurpose::Issue] {
        let refused = store.grant(near_end(41, all_or_none)).await;
        let expected = Err(GrantError::Exhausted { left: 40, held_elsewhere: false });
        assert_eq!(refused, expected, "{all_or_none:?}");
    }
    assert_eq!(
        grant(&store, near_end(60, GrantPurpose::Hold)).await.range,
        range(1061, 1101),
        "a held range may be shorter than asked"
    );
    assert_eq!(
        store.grant(near_end(1, GrantPurpose::Hold)).await,
        Err(GrantError::Exhausted { left: 0, held_elsewhere: false })
    );
    assert_eq!(next(&store, scope_id("a")).await, Some(1_101), "a refusal moves nothing");
}

pub async fn scopes_and_series_count_separately<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    store.pin(definition("invoice"), None).await.expect("a first pin");
    grant(&store, request(scope_id("a"), 10)).await;
    for other in [scope_id("b"), scope_id(""), ScopeId { series: series("invoice"), ..scope_id("a") }] {
        assert_eq!(grant(&store, request(other.clone(), 1)).await.range, range(1001, 1002), "{other}");
    }
    assert_eq!(next(&store, scope_id("a")).await, Some(1011));
}

pub async fn calls_for_many_scopes_are_answered_in_the_order_of_their_requests<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, request(scope_id("b"), 5)).await;
    let unknown = ScopeId { series: series("unknown"), ..scope_id("a") };
    let asked =
        [(scope_id("c"), 1), (unknown, 2), (scope_id("b"), 3), (scope_id("a"), 4), (scope_id("b"), 5)];
    let granted = store.grant_all(asked.map(|(scope_id, count)| request(scope_id, count)).into()).await;
    let ranges: Vec<_> =
        granted.iter().map(|granted| granted.as_ref().ok().map(|grant| grant.range)).collect();
    let expected = [(1001, 1002), (0, 0), (1006, 1009), (1001, 1005), (1009, 1014)];
    assert_eq!(ranges, expected.map(|(from, to)| PositionRange::new(from, to)));
    let release = |scope: &str, at: usize| {
        let grant = granted[at].as_ref().expect("granted");
        ReleaseRequest { scope_id: scope_id(scope), range: grant.range, version: grant.version, lost: vec![] }
    };
    let released = store.release_all(vec![release("c", 0), release("b", 2), release("a", 3)]).await;
    let (returned, gap) = (Ok(ReleaseOutcome::Returned), Ok(ReleaseOutcome::Gap));
    assert_eq!(released, [returned.clone(), gap, returned], "more was granted of the second scope");
    assert_eq!(next(&store, scope_id("a")).await, Some(1001));
}

pub async fn the_scope_limit_holds_and_reads_create_no_scope<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let limited = |scope: &str| GrantRequest { scopes_max: 2, ..request(scope_id(scope), 1) };
    assert_eq!(next(&store, scope_id("a")).await, None);
    grant(&store, limited("a")).await;
    assert_eq!(next(&store, scope_id("b")).await, None);
    grant(&store, limited("b")).await;
    assert_eq!(store.grant(limited("c")).await, Err(GrantError::TooManyScopes(2)));
    grant(&store, limited("a")).await;
    assert_eq!(next(&store, scope_id("c")).await, None, "a refusal creates nothing");
}

pub async fn a_range_is_released_once_and_only_if_nothing_was_granted_since<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let Grant { version, .. } = grant(&store, request(scope_id("a"), 32)).await;
    let release = ReleaseRequest { scope_id: scope_id("a"), range: range(1011, 1033), version, lost: vec![] };
    assert_eq!(store.release(release.clone()).await, Ok(ReleaseOutcome::Returned));
    assert_eq!(next(&store, scope_id("a")).await, Some(1011));
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Gap), "not twice");
    let Grant { range: again, version, .. } = grant(&store, request(scope_id("a"), 10)).await;
    assert_eq!(again, range(1011, 1021), "a released range is granted again");
    grant(&store, request(scope_id("a"), 10)).await;
    let late = ReleaseRequest { scope_id: scope_id("a"), range: range(1015, 1021), version, lost: vec![] };
    assert_eq!(store.release(late).await, Ok(ReleaseOutcome::Gap));
    assert_eq!(next(&store, scope_id("a")).await, Some(1031), "a cursor never falls below a granted range");
    let unknown =
        ReleaseRequest { scope_id: scope_id("never"), range: range(1, 2), version: 0, lost: vec![] };
    assert_eq!(store.release(unknown).await, Ok(ReleaseOutcome::Gap));
}

/// A second holder is granted the next range and releases all of it. The cursor is where the first holder left it,
/// but its version has changed.
pub async fn cursors_are_read_at_once_in_the_order_of_their_scopes<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for (name, count) in [("a", 32), ("b", 7)] {
        grant(&store, request(scope_id(name), count)).await;
    }
    let ids = ["b", "new", "a", "b"].map(scope_id);
    let series = ids[0].series.clone();
    let keys = ids.iter().map(|id| id.scope.clone()).collect();
    let cursors = store.cursors(series.clone(), keys).await.expect("cursors");
    let mut one_by_one = Vec::new();
    for id in ids {
        one_by_one.push(store.cursor(id).await.expect("a cursor"));
    }
    assert_eq!(cursors, one_by_one);
    assert!(cursors[0].is_some() && cursors[1].is_none() && cursors[0] != cursors[2]);
    let scopes = store.scopes(series.clone(), None, 10).await.expect("scopes");
    assert_eq!(scopes.len(), 2, "a look creates no scope");
    assert_eq!(store.cursors(series, Vec::new()).await, Ok(Vec::new()));
}

pub async fn a_release_needs_the_cursor_version_as_well_as_its_position<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let first = grant(&store, request(scope_id("a"), 32)).await;
    let other = grant(&store, request(scope_id("a"), 32)).await;
    let release =
        ReleaseRequest { scope_id: scope_id("a"), range: other.range, version: other.version, lost: vec![] };
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Returned));
    assert_eq!(next(&store, scope_id("a")).await, Some(first.range.to()));
    let release = ReleaseRequest {
        scope_id: scope_id("a"),
        range: range(1020, 1033),
        version: first.version,
        lost: vec![],
    };
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Gap));
}

pub async fn a_floor_is_durable_and_only_rises<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let before = grant(&store, request(scope_id("a"), 32)).await;
    let raised = store.raise_floor(scope_id("a"), 5_000, None).await.expect("a floor");
    assert_eq!(raised.next, 5_000);
    assert!(raised.version > before.version, "an earlier holder cannot release");
    assert_eq!(store.raise_floor(scope_id("a"), 4_000, None).await.map(|cursor| cursor.next), Ok(5_000));
    assert_eq!(store.raise_floor(scope_id("new"), 2_000, None).await.map(|cursor| cursor.next), Ok(2_000));
    drop(store);
    let store = data.open().await;
    assert_eq!(grant(&store, request(scope_id("a"), 1)).await.range.from(), 5_000);
    assert_eq!(grant(&store, request(scope_id("new"), 1)).await.range.from(), 2_000);
}

pub async fn a_pinned_definition_never_changes<D: DataSet>(data: &D) {
    let store = data.open().await;
    let shuffled = Definition { shuffled: true, ..definition("short") };
    let first = store.pin(shuffled.clone(), Some(vec![1; 16])).await.expect("a first pin");
    assert!(first.is_new && first.permutation_key == Some(vec![1; 16]));
    drop(store);
    let store = data.open().await;
    let again = store.pin(shuffled.clone(), Some(vec![2; 16])).await.expect("the same again");
    assert!(!again.is_new, "pinned once");
    assert_eq!(again.permutation_key, Some(vec![1; 16]), "the first key stays");
    for changed in [
        Definition { template: "{seq}".into(), ..shuffled.clone() },
        Definition { parameters: "scope tenant".into(), ..shuffled.clone() },
        Definition { shuffled: false, ..shuffled.clone() },
        Definition { start: 1, ..shuffled.clone() },
        Definition { reset: "yearly".into(), ..shuffled.clone() },
        Definition { time_zone: "Europe/Berlin".into(), ..shuffled.clone() },
        Definition { construction: 2, ..shuffled.clone() },
    ] {
        let refused = store.pin(changed.clone(), None).await;
        assert!(matches!(refused, Err(StoreError::Pinned { .. })), "{changed:?}: {refused:?}");
    }
    assert!(store.pin(shuffled, None).await.is_ok(), "a refusal changes nothing");
}

pub async fn the_ledger_lists_exactly_the_issued_positions<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let issue = |count| GrantRequest { purpose: GrantPurpose::Issue, ..request(scope_id("a"), count) };
    grant(&store, issue(1)).await;
    grant(&store, issue(3)).await;
    grant(&store, request(scope_id("a"), 4)).await;
    grant(&store, GrantRequest { purpose: GrantPurpose::HandOut, ..request(scope_id("a"), 2) }).await;
    grant(&store, issue(2)).await;
    drop(store);
    let store = data.open().await;
    let issued = store.issued_ranges(scope_id("a")).await.expect("a read");
    assert_eq!(issued, [range(1001, 1005), range(1011, 1013)]);
    assert_eq!(store.issued_ranges(scope_id("b")).await, Ok(Vec::new()));
}

pub async fn an_unpinned_series_is_granted_nothing<D: DataSet>(data: &D) {
    let store = data.open().await;
    let refused = store.grant(request(scope_id("a"), 1)).await;
    assert_eq!(refused, Err(GrantError::Store(StoreError::UnknownSeries("document".into()))));
    assert!(store.raise_floor(scope_id("a"), 1, None).await.is_err());
    assert_eq!(next(&store, scope_id("a")).await, None);
}

pub async fn scopes_are_listed_in_pages<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for scope in ["c", "a", "b", "e", "d"] {
        grant(&store, request(scope_id(scope), 2)).await;
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = store.scopes(series("document"), after.clone(), 2).await.expect("a page");
        assert!(page.len() <= 2);
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        seen.extend(page);
    }
    let keys: Vec<_> = seen.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["scope=a", "scope=b", "scope=c", "scope=d", "scope=e"]);
    assert!(seen.iter().all(|(_, cursor)| *cursor == Cursor { next: 1003, version: 1 }));
}
