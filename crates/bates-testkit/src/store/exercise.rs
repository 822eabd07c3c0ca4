//! The conformance suite: what every store must do, tested in this one place. A store that passes it keeps its
//! part of the promise that no number comes twice.

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

    /// Opens the store on this data. The one opened before has been dropped.
    fn open(&self) -> impl Future<Output = Self::Store>;
}

pub(super) fn series(name: &str) -> SeriesName {
    name.parse().expect("a good name")
}

/// Positions, as the port has them.
pub(crate) fn positions(values: impl IntoIterator<Item = u64>) -> Vec<Position> {
    values.into_iter().map(|value| Position::new(value).expect("it is below 2^53")).collect()
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

pub(super) fn want(scope_id: ScopeId, count: u64) -> GrantRequest {
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

pub(super) fn lease(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).expect("not empty")
}

pub(super) async fn open_pinned<D: DataSet>(data: &D) -> D::Store {
    let store = data.open().await;
    store.pin(definition("document"), None).await.expect("a first pin");
    store
}

pub(super) async fn granted<S: Store>(store: &S, want: GrantRequest) -> Grant {
    store.grant(want).await.expect("a grant")
}

pub(super) async fn next<S: Store>(store: &S, scope_id: ScopeId) -> Option<u64> {
    store.cursor(scope_id).await.expect("a read").map(|cursor| cursor.next)
}

pub async fn a_grant_survives_reopening<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let first = granted(&store, want(scope_id("a"), 32)).await;
    drop(store);
    let store = data.open().await;
    let second = granted(&store, want(scope_id("a"), 32)).await;
    assert_eq!(first.range.to(), second.range.from());
    assert!(first.version < second.version);
}

pub async fn the_end_of_the_space_is_exact<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let near_end = |count, purpose| GrantRequest { end: 1_101, purpose, ..want(scope_id("a"), count) };
    assert_eq!(granted(&store, near_end(60, GrantPurpose::Hold)).await.range, lease(1001, 1061));
    for all_or_none in [GrantPurpose::HandOut, GrantPurpose::Issue] {
        let refused = store.grant(near_end(41, all_or_none)).await;
        assert_eq!(refused, Err(GrantError::Exhausted { left: 40, elsewhere: false }), "{all_or_none:?}");
    }
    assert_eq!(
        granted(&store, near_end(60, GrantPurpose::Hold)).await.range,
        lease(1061, 1101),
        "what is left"
    );
    assert_eq!(
        store.grant(near_end(1, GrantPurpose::Hold)).await,
        Err(GrantError::Exhausted { left: 0, elsewhere: false })
    );
    assert_eq!(next(&store, scope_id("a")).await, Some(1_101), "a refusal moves nothing");
}

pub async fn scopes_and_series_are_apart<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    store.pin(definition("invoice"), None).await.expect("a first pin");
    granted(&store, want(scope_id("a"), 10)).await;
    for other in [scope_id("b"), scope_id(""), ScopeId { series: series("invoice"), ..scope_id("a") }] {
        assert_eq!(granted(&store, want(other.clone(), 1)).await.range, lease(1001, 1002), "{other}");
    }
    assert_eq!(next(&store, scope_id("a")).await, Some(1011));
}

pub async fn the_limit_of_scopes_holds_and_reads_create_none<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let limited = |scope: &str| GrantRequest { scopes_max: 2, ..want(scope_id(scope), 1) };
    assert_eq!(next(&store, scope_id("a")).await, None);
    granted(&store, limited("a")).await;
    assert_eq!(next(&store, scope_id("b")).await, None);
    granted(&store, limited("b")).await;
    assert_eq!(store.grant(limited("c")).await, Err(GrantError::TooManyScopes(2)));
    granted(&store, limited("a")).await;
    assert_eq!(next(&store, scope_id("c")).await, None, "a refusal creates nothing");
}

pub async fn a_tail_goes_back_once_and_only_if_nothing_was_granted_since<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let Grant { version, .. } = granted(&store, want(scope_id("a"), 32)).await;
    let tail = ReleaseRequest { scope_id: scope_id("a"), range: lease(1011, 1033), version, lost: vec![] };
    assert_eq!(store.release(tail.clone()).await, Ok(ReleaseOutcome::Returned));
    assert_eq!(next(&store, scope_id("a")).await, Some(1011));
    assert_eq!(store.release(tail).await, Ok(ReleaseOutcome::Gap), "not twice");
    let Grant { range: again, version, .. } = granted(&store, want(scope_id("a"), 10)).await;
    assert_eq!(again, lease(1011, 1021), "what came back is granted again");
    granted(&store, want(scope_id("a"), 10)).await;
    let late = ReleaseRequest { scope_id: scope_id("a"), range: lease(1015, 1021), version, lost: vec![] };
    assert_eq!(store.release(late).await, Ok(ReleaseOutcome::Gap));
    assert_eq!(next(&store, scope_id("a")).await, Some(1031), "a cursor never falls below what others hold");
    let unknown =
        ReleaseRequest { scope_id: scope_id("never"), range: lease(1, 2), version: 0, lost: vec![] };
    assert_eq!(store.release(unknown).await, Ok(ReleaseOutcome::Gap));
}

/// One holder sleeps; another is granted the next range and gives all of it back. The cursor stands where the
/// sleeper left it, but it is not the cursor that the sleeper knew.
pub async fn a_tail_does_not_go_back_to_a_cursor_that_only_looks_the_same<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let sleeper = granted(&store, want(scope_id("a"), 32)).await;
    let other = granted(&store, want(scope_id("a"), 32)).await;
    let all =
        ReleaseRequest { scope_id: scope_id("a"), range: other.range, version: other.version, lost: vec![] };
    assert_eq!(store.release(all).await, Ok(ReleaseOutcome::Returned));
    assert_eq!(next(&store, scope_id("a")).await, Some(sleeper.range.to()));
    let tail = ReleaseRequest {
        scope_id: scope_id("a"),
        range: lease(1020, 1033),
        version: sleeper.version,
        lost: vec![],
    };
    assert_eq!(store.release(tail).await, Ok(ReleaseOutcome::Gap));
}

pub async fn a_floor_is_raised_never_lowered_and_kept<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let before = granted(&store, want(scope_id("a"), 32)).await;
    let raised = store.raise_floor(scope_id("a"), 5_000).await.expect("a floor");
    assert_eq!(raised.next, 5_000);
    assert!(raised.version > before.version, "a holder from before cannot give back");
    assert_eq!(store.raise_floor(scope_id("a"), 4_000).await.map(|cursor| cursor.next), Ok(5_000));
    assert_eq!(store.raise_floor(scope_id("new"), 2_000).await.map(|cursor| cursor.next), Ok(2_000));
    drop(store);
    let store = data.open().await;
    assert_eq!(granted(&store, want(scope_id("a"), 1)).await.range.from(), 5_000);
    assert_eq!(granted(&store, want(scope_id("new"), 1)).await.range.from(), 2_000);
}

pub async fn what_decides_the_text_is_pinned_for_ever<D: DataSet>(data: &D) {
    let store = data.open().await;
    let shuffled = Definition { shuffled: true, ..definition("short") };
    let first = store.pin(shuffled.clone(), Some(vec![1; 16])).await.expect("a first pin");
    assert!(first.is_new && first.permutation_key == Some(vec![1; 16]));
    drop(store);
    let store = data.open().await;
    let again = store.pin(shuffled.clone(), Some(vec![2; 16])).await.expect("the same again");
    assert!(!again.is_new, "pinned once");
    assert_eq!(again.permutation_key, Some(vec![1; 16]), "a key is made once and kept");
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

pub async fn what_is_issued_is_in_the_ledger_and_nothing_else_is<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let issue = |count| GrantRequest { purpose: GrantPurpose::Issue, ..want(scope_id("a"), count) };
    granted(&store, issue(1)).await;
    granted(&store, issue(3)).await;
    granted(&store, want(scope_id("a"), 4)).await;
    granted(&store, GrantRequest { purpose: GrantPurpose::HandOut, ..want(scope_id("a"), 2) }).await;
    granted(&store, issue(2)).await;
    drop(store);
    let store = data.open().await;
    let issued = store.issued_ranges(scope_id("a")).await.expect("a read");
    assert_eq!(issued, [lease(1001, 1005), lease(1011, 1013)]);
    assert_eq!(store.issued_ranges(scope_id("b")).await, Ok(Vec::new()));
}

pub async fn a_series_that_was_never_pinned_gets_nothing<D: DataSet>(data: &D) {
    let store = data.open().await;
    let refused = store.grant(want(scope_id("a"), 1)).await;
    assert_eq!(refused, Err(GrantError::Store(StoreError::UnknownSeries("document".into()))));
    assert!(store.raise_floor(scope_id("a"), 1).await.is_err());
    assert_eq!(next(&store, scope_id("a")).await, None);
}

pub async fn scopes_are_listed_in_pages<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for scope in ["c", "a", "b", "e", "d"] {
        granted(&store, want(scope_id(scope), 2)).await;
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
