//! The part of the conformance suite about callers: their tokens and quotas.

use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    CallerToken, OperationFilter, OperationKind, PreviousSecret, QuotaRequest, Store, TokenChange,
};

use super::audit::moment;
use super::exercise::DataSet;
use super::operations::operation;

pub(super) fn token(name: &str, digest: u8) -> CallerToken {
    CallerToken {
        name: name.into(),
        grant: r#"{"may":["read"]}"#.into(),
        digest: [digest; 32],
        previous: None,
        created: moment(1),
        expires: None,
    }
}

async fn change<S: Store>(store: &S, before: Option<CallerToken>, after: Option<CallerToken>) -> bool {
    let name = before.as_ref().or(after.as_ref()).expect("a token").name.clone();
    let change = TokenChange { name, before, after };
    store.change_token(change, operation(OperationKind::TokenAdded, "", 0)).await.expect("a write")
}

pub async fn a_token_changes_only_from_the_state_that_the_caller_saw<D: DataSet>(data: &D) {
    let store = data.open().await;
    let first = token("acme", 1);
    let rotated = CallerToken {
        previous: Some(PreviousSecret { digest: [1; 32], ends: moment(5) }),
        expires: Some(moment(9)),
        digest: [2; 32],
        ..first.clone()
    };
    let seen = store.check_revision().await.expect("a read");
    assert!(change(&store, None, Some(first.clone())).await);
    assert!(change(&store, None, Some(first.clone())).await, "a repeated call changes nothing");
    assert!(!change(&store, None, Some(token("acme", 9))).await, "the name is taken");
    assert!(change(&store, Some(first.clone()), Some(rotated.clone())).await);
    assert!(!change(&store, Some(first), None).await, "it was rotated meanwhile");
    assert!(change(&store, None, Some(token("mail", 3))).await);
    let now = store.check_revision().await.expect("a read");
    assert!(now != seen || !store.is_shared(), "other nodes must notice the change");
    drop(store);
    let store = data.open().await;
    assert_eq!(store.tokens().await, Ok(vec![rotated.clone(), token("mail", 3)]));
    assert!(change(&store, Some(rotated), None).await);
    assert_eq!(store.tokens().await, Ok(vec![token("mail", 3)]));
    let recorded = store.operations(OperationFilter::default(), None, 100).await.expect("a read").len();
    assert_eq!(recorded, 5, "each change, and the repeated one, but not those that were refused");
}

pub async fn concurrent_draws_never_exceed_a_quota<D: DataSet>(data: &D) {
    let store = Arc::new(data.open().await);
    let request = || QuotaRequest { caller: "acme".into(), quota: 100, needed: 3, slice: 7 };
    let tasks: Vec<_> = (0..40)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.draw_quota(request()).await.expect("a draw") })
        })
        .collect();
    let mut drawn = 0;
    for task in tasks {
        let draw = task.await.expect("a task");
        assert!(draw.granted == 0 || (3..=7).contains(&draw.granted), "{draw:?}");
        assert!(draw.day_ends_in <= Duration::from_hours(24), "{draw:?}");
        drawn += draw.granted;
    }
    // 14 slices of 7 leave 2, which are fewer than a request needs.
    assert_eq!(drawn, 98);
    let other = QuotaRequest { caller: "mail".into(), ..request() };
    assert_eq!(store.draw_quota(other).await.expect("a draw").granted, 7, "each caller has its own");
    drop(store);
    let last = QuotaRequest { needed: 2, ..request() };
    assert_eq!(data.open().await.draw_quota(last).await.expect("a draw").granted, 2, "it survives reopening");
}
