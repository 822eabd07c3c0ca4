//! The part of the conformance suite about the descriptions and promises of series.

use bates_core::store::prelude::*;
use bates_core::{
    Definition, DescriptionChange, GrantError, GrantRequest, Promise, PromiseChange, StoreError,
};

use super::exercise::{DataSet, definition, grant, open_pinned, request, scope_id, series};

pub(super) fn describing(before: Option<&str>, after: Option<&str>) -> DescriptionChange {
    DescriptionChange { before: before.map(Into::into), after: after.map(Into::into), revision: None }
}

pub async fn retiring_a_series_removes_its_description_and_keeps_its_cursors<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    assert_eq!(store.descriptions().await, Ok(Vec::new()), "a pin alone describes nothing");
    assert_eq!(store.definition(series("invoice")).await, Ok(None), "it was never pinned");
    let unknown = store.describe(series("never"), describing(None, Some("{}")), None).await;
    assert_eq!(unknown, Err(StoreError::UnknownSeries("never".into())));
    store.pin(definition("invoice"), None).await.expect("a first pin");
    let mut revision = store.check_revision().await.expect("a read");
    let changes =
        [("invoice", None, "first"), ("document", None, "{\"a\":1}"), ("invoice", Some("first"), "second")];
    for (name, before, description) in changes {
        assert_eq!(store.describe(series(name), describing(before, Some(description)), None).await, Ok(true));
        let late = store.describe(series(name), describing(None, Some("of another node")), None).await;
        assert_eq!(late, Ok(false), "a description based on an outdated one is refused");
        let seen = store.check_revision().await.expect("a read");
        assert!(seen != revision || !store.is_shared(), "other nodes must notice the change");
        revision = seen;
    }
    let before = grant(&store, request(scope_id("a"), 10)).await;
    drop(store);
    let store = data.open().await;
    let both = vec![(series("document"), "{\"a\":1}".into()), (series("invoice"), "second".into())];
    assert_eq!(store.descriptions().await, Ok(both));
    for _ in 0..2 {
        let retired = store.describe(series("document"), describing(Some("{\"a\":1}"), None), None).await;
        assert_eq!(retired, Ok(true), "retiring twice is no error");
    }
    assert_eq!(store.descriptions().await, Ok(vec![(series("invoice"), "second".into())]));
    drop(store);
    let store = data.open().await;
    assert!(!store.pin(definition("document"), None).await.expect("the same again").is_new);
    let after = grant(&store, request(scope_id("a"), 10)).await;
    assert_eq!(after.range.from(), before.range.to(), "a series of the same name continues");
    assert!(after.version > before.version, "earlier holders cannot release");
    assert_eq!(store.definition(series("invoice")).await, Ok(Some(definition("invoice"))), "its pin stays");
}

/// Two nodes may find the same key free at the same time.
pub async fn a_description_checked_against_an_earlier_revision_is_refused<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    store.pin(definition("invoice"), None).await.expect("a first pin");
    let checked = Some(store.check_revision().await.expect("a read"));
    let describe = async |name, after: &str, revision| {
        let change = DescriptionChange { revision, ..describing(None, Some(after)) };
        store.describe(series(name), change, None).await
    };
    assert_eq!(describe("document", "first", checked).await, Ok(true));
    if store.is_shared() {
        assert_eq!(describe("invoice", "second", checked).await, Ok(false), "another series came first");
    }
    assert_eq!(describe("document", "first", checked).await, Ok(true), "written already");
    let checked = Some(store.check_revision().await.expect("a read"));
    assert_eq!(describe("invoice", "second", checked).await, Ok(true));
}

pub async fn a_promise_is_pinned_and_only_change_promise_changes_it<D: DataSet>(data: &D) {
    let promised = |promise| Definition { promise: Some(promise), ..definition("document") };
    let store = data.open().await;
    store.pin(promised(Promise::Unique), None).await.expect("a first pin");
    let other = store.pin(promised(Promise::Gapless), None).await;
    assert!(matches!(other, Err(StoreError::PromisePinned { .. })), "{other:?}");
    let name = || series("document");
    let change =
        async |from, to, new| store.change_promise(name(), PromiseChange { from, to }, new, None).await;
    assert_eq!(change(Promise::Ordered, Promise::Gapless, None).await, Ok(false));
    for _ in 0..2 {
        let changed = change(Promise::Unique, Promise::Gapless, None).await;
        assert_eq!(changed, Ok(true), "repeating the change is no error");
    }
    assert_eq!(change(Promise::Unique, Promise::Ordered, None).await, Ok(false));
    assert_eq!(store.describe(name(), describing(None, Some("gapless")), None).await, Ok(true));
    let redescribed = |before| Some(describing(Some(before), Some("ordered")));
    let late = change(Promise::Gapless, Promise::Ordered, redescribed("other")).await;
    assert_eq!(late, Ok(false), "the description is not the expected one");
    for (from, to) in [(Promise::Gapless, Promise::Ordered), (Promise::Ordered, Promise::Gapless)] {
        let described = (to == Promise::Ordered).then(|| redescribed("gapless")).flatten();
        assert_eq!(change(from, to, described).await, Ok(true));
    }
    let late = change(Promise::Ordered, Promise::Gapless, redescribed("other")).await;
    assert_eq!(late, Ok(true), "the description is the new one already");
    let late = change(Promise::Ordered, Promise::Gapless, Some(describing(Some("other"), None))).await;
    assert_eq!(late, Ok(false), "the promise is the new one already, but the description is not");
    assert_eq!(store.descriptions().await, Ok(vec![(name(), "ordered".into())]));
    drop(store);
    let store = data.open().await;
    assert_eq!(store.promises().await, Ok(vec![(name(), Promise::Gapless)]));
    assert!(store.pin(promised(Promise::Gapless), None).await.is_ok());
    if store.is_shared() {
        let outdated = GrantRequest { promise: Some(Promise::Unique), ..request(scope_id("a"), 1) };
        let refused = store.grant(outdated).await;
        // Otherwise an outdated process would break the promise.
        assert!(matches!(refused, Err(GrantError::Store(StoreError::PromiseChanged { .. }))), "{refused:?}");
    }
    grant(&store, GrantRequest { promise: Some(Promise::Gapless), ..request(scope_id("a"), 1) }).await;
}
