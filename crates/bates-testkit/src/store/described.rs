//! What a store keeps of a series besides what decides its text: its description and its promise.

use bates_core::store::prelude::*;
use bates_core::{
    Definition, DescriptionChange, GrantError, GrantRequest, Promise, PromiseChange, StoreError,
};

use super::exercise::{DataSet, definition, granted, open_pinned, scope_id, series, want};

pub async fn a_description_is_kept_until_the_series_is_retired_and_its_cursors_longer<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    assert_eq!(store.descriptions().await, Ok(Vec::new()), "a pin alone describes nothing");
    let unknown = store.describe(series("never"), None, Some("{}".into())).await;
    assert_eq!(unknown, Err(StoreError::UnknownSeries("never".into())));
    store.pin(definition("invoice"), None).await.expect("a first pin");
    let mut described = store.check_revision().await.expect("a read");
    let described_so =
        [("invoice", None, "first"), ("document", None, "{\"a\":1}"), ("invoice", Some("first"), "second")];
    for (name, before, description) in described_so {
        let before = before.map(Into::into);
        assert_eq!(store.describe(series(name), before, Some(description.into())).await, Ok(true));
        let late = store.describe(series(name), None, Some("of another node".into())).await;
        assert_eq!(late, Ok(false), "of two that describe a series at once, one is told");
        let seen = store.check_revision().await.expect("a read");
        assert!(seen != described || !store.is_shared(), "other nodes could not see it");
        described = seen;
    }
    let before = granted(&store, want(scope_id("a"), 10)).await;
    drop(store);
    let store = data.open().await;
    let both = vec![(series("document"), "{\"a\":1}".into()), (series("invoice"), "second".into())];
    assert_eq!(store.descriptions().await, Ok(both));
    for _ in 0..2 {
        let retired = store.describe(series("document"), Some("{\"a\":1}".into()), None).await;
        assert_eq!(retired, Ok(true), "retired twice is retired");
    }
    assert_eq!(store.descriptions().await, Ok(vec![(series("invoice"), "second".into())]));
    drop(store);
    let store = data.open().await;
    assert!(!store.pin(definition("document"), None).await.expect("the same again").is_new);
    let after = granted(&store, want(scope_id("a"), 10)).await;
    assert_eq!(after.range.from(), before.range.to(), "made again, it goes on where it was");
    assert!(after.version > before.version, "and no holder from before can give back");
}

pub async fn a_promise_is_pinned_and_changed_by_one_call_only<D: DataSet>(data: &D) {
    let promised = |promise| Definition { promise: Some(promise), ..definition("document") };
    let store = data.open().await;
    store.pin(promised(Promise::Unique), None).await.expect("a first pin");
    let other = store.pin(promised(Promise::Gapless), None).await;
    assert!(matches!(other, Err(StoreError::PromisePinned { .. })), "{other:?}");
    let document = || series("document");
    let change = async |from, to, described| {
        store.change_promise(document(), PromiseChange { from, to }, described).await
    };
    assert_eq!(change(Promise::Ordered, Promise::Gapless, None).await, Ok(false));
    for _ in 0..2 {
        let changed = change(Promise::Unique, Promise::Gapless, None).await;
        assert_eq!(changed, Ok(true), "changed twice is changed");
    }
    assert_eq!(change(Promise::Unique, Promise::Ordered, None).await, Ok(false));
    assert_eq!(store.describe(document(), None, Some("gapless".into())).await, Ok(true));
    let redescribed =
        |before: &str| Some(DescriptionChange { before: before.into(), after: "ordered".into() });
    let late = change(Promise::Gapless, Promise::Ordered, redescribed("other")).await;
    assert_eq!(late, Ok(false), "another call has changed it meanwhile");
    for (from, to) in [(Promise::Gapless, Promise::Ordered), (Promise::Ordered, Promise::Gapless)] {
        let described = (to == Promise::Ordered).then(|| redescribed("gapless")).flatten();
        assert_eq!(change(from, to, described).await, Ok(true));
    }
    assert_eq!(store.descriptions().await, Ok(vec![(document(), "ordered".into())]));
    drop(store);
    let store = data.open().await;
    assert_eq!(store.promises().await, Ok(vec![(document(), Promise::Gapless)]));
    assert!(store.pin(promised(Promise::Gapless), None).await.is_ok());
    if store.is_shared() {
        let outdated = GrantRequest { promise: Some(Promise::Unique), ..want(scope_id("a"), 1) };
        let refused = store.grant(outdated).await;
        let is_refused = matches!(refused, Err(GrantError::Store(StoreError::PromiseChanged { .. })));
        assert!(is_refused, "a process that has not followed would break the promise: {refused:?}");
    }
    granted(&store, GrantRequest { promise: Some(Promise::Gapless), ..want(scope_id("a"), 1) }).await;
}
