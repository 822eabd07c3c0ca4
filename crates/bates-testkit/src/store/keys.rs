//! The part of the conformance suite about idempotency keys.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{AssignError, AssignRequest, Assignment, DocumentState, Verdict};

use super::exercise::{DataSet, series};
use super::outbox::{LONG, assign, claim, issued, keyed_document, open_two_series, settle};

pub async fn a_repeated_key_returns_its_number_and_refuses_another_body<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let first = assign(&store, keyed_document("a", "k", 1)).await;
    drop(store);
    let store = data.open().await;
    let again = assign(&store, keyed_document("a", "k", 1)).await;
    assert_eq!(again, Assignment { is_new: false, ..first.clone() });
    assert_eq!(store.assign(keyed_document("a", "k", 2)).await, Err(AssignError::KeyReused));
    assert_eq!(store.assign(keyed_document("b", "k", 2)).await, Err(AssignError::KeyReused));
    let mut elsewhere = keyed_document("a", "k", 2);
    elsewhere.scope_id.series = series("other");
    assert!(assign(&store, elsewhere).await.is_new, "keys belong to a series");
    let mut another = keyed_document("a", "k", 2);
    another.idempotency.as_mut().expect("a key").caller = "another".into();
    assert_eq!(&*assign(&store, another).await.number, "a-1002", "and to a caller");
    let claims = claim(&store, 10, LONG).await;
    settle(&store, &claims, Verdict::Delivered).await;
    let late = assign(&store, keyed_document("a", "k", 1)).await;
    assert_eq!((late.document_id, late.state), (first.document_id, DocumentState::Delivered));
    assert_eq!(issued(&store, "a").await, [(1001, 1003)], "repeated requests take no position");
}

pub async fn a_request_for_an_earlier_answer_numbers_nothing<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let repeated =
        |scope: &str, key: &str| AssignRequest { only_repeats: true, ..keyed_document(scope, key, 1) };
    for scope in ["a", "new"] {
        assert_eq!(store.assign(repeated(scope, "k")).await, Err(AssignError::KeyUnused));
    }
    let first = assign(&store, keyed_document("a", "k", 1)).await;
    assert!(first.is_new && &*first.number == "a-1001", "the key is free: {first:?}");
    assert_eq!(assign(&store, repeated("a", "k")).await, Assignment { is_new: false, ..first });
    let other = AssignRequest { only_repeats: true, ..keyed_document("a", "k", 2) };
    assert_eq!(store.assign(other).await, Err(AssignError::KeyReused));
    assert_eq!(issued(&store, "a").await, [(1001, 1002)]);
    assert!(issued(&store, "new").await.is_empty(), "no scope was created");
}

pub async fn concurrent_requests_with_one_key_get_one_number<D: DataSet>(data: &D) {
    let store = Arc::new(open_two_series(data).await);
    let tasks: Vec<_> = (0..60)
        .map(|at| {
            let store = store.clone();
            let key = format!("key {}", at % 3);
            tokio::spawn(async move { (at % 3, assign(&*store, keyed_document("a", &key, 1)).await) })
        })
        .collect();
    let mut numbers: BTreeMap<usize, HashSet<Box<str>>> = BTreeMap::new();
    let mut firsts = 0;
    for task in tasks {
        let (key, assignment) = task.await.expect("the task ends");
        firsts += usize::from(assignment.is_new);
        numbers.entry(key).or_default().insert(assignment.number);
    }
    assert!(numbers.values().all(|numbers| numbers.len() == 1), "{numbers:?}");
    assert_eq!((firsts, claim(&*store, 100, LONG).await.len()), (3, 3));
    assert_eq!(issued(&*store, "a").await, [(1001, 1004)]);
}
