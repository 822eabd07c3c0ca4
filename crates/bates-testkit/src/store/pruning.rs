//! The part of the conformance suite about removing old documents: positions stay explained, and keys answer as before.

use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    Assignment, DocumentAction, DocumentContent, DocumentState, MissingRange, Promise, PruneGroup, Store,
    Verdict,
};

use super::exercise::{DataSet, scope_id, series};
use super::outbox::{
    LONG, assign, assign_request, claim, document, find_document, keyed_document, open_two_series, settle,
    state,
};

/// Documents in every state that is a gap, with a key each: dead, in doubt, abandoned, abandoned in doubt, voided.
async fn fill<S: Store>(store: &S) -> Vec<(&'static str, Assignment)> {
    let mut assigned = Vec::new();
    for key in ["dead", "silent", "abandoned", "abandoned in doubt"] {
        assigned.push((key, assign(store, keyed_document("a", key, 1)).await));
    }
    let claims = claim(store, 4, Duration::ZERO).await;
    settle(store, &claims[..1], Verdict::Dead("refused".into())).await;
    settle(store, &claims[1..2], Verdict::Unanswered(None, "no answer".into())).await;
    settle(store, &claims[2..3], Verdict::RetryAfter(LONG, "refused".into())).await;
    for (_, abandoned) in &assigned[2..] {
        store.apply_action(abandoned.document_id, DocumentAction::Abandon, None).await.expect("a write");
    }
    let mut reservation = keyed_document("a", "voided", 1);
    reservation.content = DocumentContent::Reservation(LONG);
    let voided = assign(store, reservation).await;
    store.apply_action(voided.document_id, DocumentAction::Void, None).await.expect("a write");
    assigned.push(("voided", voided));
    assigned
}

async fn missing(store: &impl Store) -> Vec<MissingRange> {
    let scopes = store.scope_positions(series("document"), None, 100).await.expect("a read");
    let found =
        scopes.into_iter().find(|(scope, _)| *scope == scope_id("a").scope).expect("the scope exists");
    found.1.missing(Promise::Gapless, 1001, None)
}

async fn prune(store: &impl Store, limit: usize) -> u64 {
    store.prune_documents(PruneGroup::Undelivered, Duration::ZERO, limit).await.expect("a write")
}

pub async fn a_removed_document_leaves_the_gap_and_the_reason_that_it_had<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    fill(&store).await;
    let before = missing(&store).await;
    assert_eq!(before.iter().map(|missing| missing.range.count()).sum::<u64>(), 5, "{before:?}");
    assert_eq!(prune(&store, 2).await, 2);
    assert_eq!(missing(&store).await, before, "some are removed");
    assert_eq!(prune(&store, 100).await, 3);
    assert_eq!(missing(&store).await, before, "all are removed");
    assert_eq!(prune(&store, 100).await, 0);
    drop(store);
    assert_eq!(missing(&data.open().await).await, before, "after a restart");
}

pub async fn the_key_of_a_removed_document_answers_with_its_number_and_state<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let assigned = fill(&store).await;
    let mut states = Vec::new();
    for (_, assignment) in &assigned {
        states.push(state(&store, assignment.document_id).await);
    }
    assert_eq!(prune(&store, 100).await, 5);
    drop(store);
    let store = data.open().await;
    for ((key, first), state) in assigned.iter().zip(states) {
        assert_eq!(find_document(&store, first.document_id).await, None, "{key}");
        let again = assign(&store, keyed_document("a", key, 1)).await;
        let expected = Assignment { state, is_new: false, ..first.clone() };
        assert_eq!(again, expected, "{key}");
    }
}

pub async fn a_document_is_removed_only_in_its_group_and_after_its_time<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    fill(&store).await;
    assign(&store, document("a")).await;
    assign(&store, assign_request("a", DocumentContent::Reservation(LONG))).await;
    let count =
        async || store.count_documents().await.expect("a read").iter().map(|(.., count)| count).sum::<u64>();
    assert_eq!(store.prune_documents(PruneGroup::Undelivered, LONG, 100).await, Ok(0), "nothing is old");
    assert_eq!(store.prune_documents(PruneGroup::Delivered, Duration::ZERO, 100).await, Ok(0));
    assert_eq!(count().await, 7);
    assert_eq!(prune(&store, 100).await, 5);
    let counts = store.count_documents().await.expect("a read");
    let mut states: Vec<DocumentState> = counts.into_iter().map(|(_, state, _)| state).collect();
    states.sort_unstable();
    assert_eq!(states, [DocumentState::Pending, DocumentState::Reserved], "open ones stay");
}

pub async fn a_retried_document_is_not_removed_and_is_delivered<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let dead = assign(&store, keyed_document("a", "k", 1)).await.document_id;
    let claims = claim(&store, 1, LONG).await;
    settle(&store, &claims, Verdict::Dead("down".into())).await;
    store.apply_action(dead, DocumentAction::Retry, None).await.expect("a write");
    assert_eq!(prune(&store, 100).await, 0);
    let claims = claim(&store, 1, LONG).await;
    settle(&store, &claims, Verdict::Delivered).await;
    assert_eq!(store.prune_documents(PruneGroup::Delivered, Duration::ZERO, 100).await, Ok(1));
    assert_eq!(assign(&store, keyed_document("a", "k", 1)).await.state, DocumentState::Delivered);
    assert_eq!(missing(&store).await, []);
}
