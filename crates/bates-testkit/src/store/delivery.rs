//! The part of the conformance suite about delivery: claims, settlements and actions on documents.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{ActionOutcome, ClaimRequest, DocumentAction, DocumentFilter, DocumentState, Verdict};
use uuid::Uuid;

use super::exercise::{DataSet, scope_id, series};
use super::outbox::{LONG, assign, claim, document, find_document, open_two_series, settle, state};

pub async fn only_the_latest_claim_of_a_document_can_settle_it<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let document_id = assign(&store, document("a")).await.document_id;
    let first = claim(&store, 10, Duration::ZERO).await;
    assert_eq!(
        first.iter().map(|claimed| (claimed.document_id, claimed.attempt)).collect::<Vec<_>>(),
        [(document_id, 1)]
    );
    let second = claim(&store, 10, LONG).await;
    assert_eq!(second[0].attempt, 2, "an expired claim is claimed again");
    assert!(claim(&store, 10, LONG).await.is_empty(), "an open claim is not");
    assert_eq!(settle(&store, &first, Verdict::Delivered).await, 0);
    assert_eq!(settle(&store, &first, Verdict::Dead("late".into())).await, 0);
    assert_eq!(state(&store, document_id).await, DocumentState::Pending, "a late verdict changes nothing");
    assert_eq!(settle(&store, &second, Verdict::Delivered).await, 1);
    assert_eq!(settle(&store, &second, Verdict::Dead("twice".into())).await, 0);
    let document = find_document(&store, document_id).await.expect("the document exists");
    assert_eq!((document.state, document.attempts, document.due), (DocumentState::Delivered, 2, None));
}

pub async fn a_failed_document_is_due_again_after_its_delay_or_is_dead<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let document_id = assign(&store, document("a")).await.document_id;
    let first = claim(&store, 10, LONG).await;
    settle(&store, &first, Verdict::RetryAfter(LONG, "no answer \u{0}".into())).await;
    assert!(claim(&store, 10, LONG).await.is_empty(), "it is not due yet");
    let document = find_document(&store, document_id).await.expect("the document exists");
    assert!(document.last_error.is_some_and(|error| error.starts_with("no answer")));
    assert!(document.due.is_some_and(|due| due > document.updated));
    let ActionOutcome::Done(_) =
        store.apply_action(document_id, DocumentAction::Retry, None).await.expect("a write")
    else {
        panic!("refused")
    };
    let again = claim(&store, 10, LONG).await;
    assert_eq!(again[0].attempt, 1, "a retry restarts its attempts");
    settle(&store, &again, Verdict::RetryAfter(Duration::ZERO, "soon".into())).await;
    let last = claim(&store, 10, LONG).await;
    settle(&store, &last, Verdict::Dead("for good".into())).await;
    assert_eq!(state(&store, document_id).await, DocumentState::Dead);
    assert!(claim(&store, 10, LONG).await.is_empty());
}

pub async fn documents_with_the_fewest_attempts_are_claimed_first<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    assign(&store, document("a")).await;
    let old = claim(&store, 1, LONG).await;
    settle(&store, &old, Verdict::RetryAfter(Duration::ZERO, "again".into())).await;
    let new = assign(&store, document("a")).await.document_id;
    assert_eq!(
        claim(&store, 1, LONG).await[0].document_id,
        new,
        "a failing document does not delay new ones"
    );
    assert_eq!(claim(&store, 1, LONG).await[0].document_id, old[0].document_id);
}

pub async fn concurrent_claims_share_no_document<D: DataSet>(data: &D) {
    let store = Arc::new(open_two_series(data).await);
    for _ in 0..40 {
        assign(&*store, document("a")).await;
    }
    let claims: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { claim(&*store, 7, LONG).await })
        })
        .collect();
    let mut ids = Vec::new();
    for claim in claims {
        ids.extend(claim.await.expect("the task ends").into_iter().map(|claimed| claimed.document_id));
    }
    ids.extend(claim(&*store, 40, LONG).await.into_iter().map(|claimed| claimed.document_id));
    assert_eq!((ids.len(), ids.iter().collect::<HashSet<_>>().len()), (40, 40));
}

pub async fn a_pending_document_can_be_abandoned_but_not_confirmed_or_voided<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let document_id = assign(&store, document("a")).await.document_id;
    for action in [DocumentAction::Confirm, DocumentAction::Void] {
        let refused = store.apply_action(document_id, action, None).await.expect("a write");
        assert!(
            matches!(refused, ActionOutcome::Refused(document) if document.state == DocumentState::Pending)
        );
    }
    let ActionOutcome::Done(document) =
        store.apply_action(document_id, DocumentAction::Abandon, None).await.expect("a write")
    else {
        panic!()
    };
    assert_eq!((document.state, document.in_doubt), (DocumentState::Abandoned, false), "no attempt was made");
    assert!(claim(&store, 1, LONG).await.is_empty());
    assert!(
        matches!(
            store.apply_action(document_id, DocumentAction::Abandon, None).await,
            Ok(ActionOutcome::Done(_))
        ),
        "repeating the action is no error"
    );
    assert!(matches!(
        store.apply_action(document_id, DocumentAction::Retry, None).await,
        Ok(ActionOutcome::Refused(_))
    ));
    assert_eq!(
        store.apply_action(Uuid::now_v7(), DocumentAction::Retry, None).await,
        Ok(ActionOutcome::NotFound)
    );
}

pub async fn a_claimed_document_cannot_be_abandoned<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let document_id = assign(&store, document("a")).await.document_id;
    let claims = claim(&store, 1, LONG).await;
    let waiting = assign(&store, document("a")).await.document_id;
    let ActionOutcome::AttemptUnderWay(document) =
        store.apply_action(document_id, DocumentAction::Abandon, None).await.expect("a write")
    else {
        panic!("an open claim must not be abandoned")
    };
    assert_eq!(document.state, DocumentState::Pending);
    assert!(document.due.is_some_and(|due| due > document.created), "the end of the claim is known");
    assert_eq!(
        store.apply_action_to_all(DocumentFilter::default(), DocumentAction::Abandon, None).await,
        Ok(1),
        "only the unclaimed document"
    );
    assert_eq!(state(&store, waiting).await, DocumentState::Abandoned);
    assert_eq!(settle(&store, &claims, Verdict::Delivered).await, 1, "the claim can still be settled");
    assert_eq!(state(&store, document_id).await, DocumentState::Delivered);
}

pub async fn an_attempt_without_an_outcome_marks_its_document_in_doubt<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(assign(&store, document("a")).await.document_id);
    }
    let doubts = async || {
        let all = store.documents(DocumentFilter::default(), None, 10).await.expect("a read");
        ids.iter()
            .map(|document_id| all.iter().any(|document| document.id == *document_id && document.in_doubt))
            .collect::<Vec<_>>()
    };
    let claims = claim(&store, 5, Duration::ZERO).await;
    assert_eq!(claims.iter().map(|claimed| claimed.document_id).collect::<Vec<_>>(), ids);
    assert_eq!(doubts().await, [false; 5], "the claims may still be settled");
    settle(&store, &claims[..1], Verdict::RetryAfter(LONG, "refused".into())).await;
    settle(&store, &claims[1..2], Verdict::Unanswered(Some(LONG), "no answer".into())).await;
    settle(&store, &claims[2..3], Verdict::Unanswered(None, "no answer".into())).await;
    assert_eq!(doubts().await, [false, true, true, false, false]);
    let states = [state(&store, ids[1]).await, state(&store, ids[2]).await];
    assert_eq!(states, [DocumentState::Pending, DocumentState::Dead]);
    assert!(
        matches!(store.apply_action(ids[3], DocumentAction::Abandon, None).await, Ok(ActionOutcome::Done(_))),
        "its claim has expired"
    );
    let next = claim(&store, 5, LONG).await;
    assert_eq!(next.iter().map(|claimed| claimed.document_id).collect::<Vec<_>>(), ids[4..]);
    assert_eq!(doubts().await, [false, true, true, true, true], "their first attempts were never settled");
    settle(&store, &next, Verdict::Dead("refused".into())).await;
    assert!(doubts().await[4], "the second outcome does not decide the first");
}

pub async fn a_bulk_action_changes_only_matching_documents<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let mut ids = Vec::new();
    for scope in ["a", "a", "b"] {
        ids.push(assign(&store, document(scope)).await.document_id);
    }
    let claims = claim(&store, 10, LONG).await;
    settle(&store, &claims, Verdict::Dead("down".into())).await;
    let of_a = DocumentFilter {
        scope: Some(scope_id("a").scope),
        state: Some(DocumentState::Dead),
        ..DocumentFilter::default()
    };
    assert_eq!(store.apply_action_to_all(of_a.clone(), DocumentAction::Retry, None).await, Ok(2));
    assert_eq!(store.apply_action_to_all(of_a, DocumentAction::Retry, None).await, Ok(0));
    assert_eq!(state(&store, ids[2]).await, DocumentState::Dead);
    let tally = store.count_documents().await.expect("a read");
    assert_eq!(
        tally,
        [(series("document"), DocumentState::Pending, 2), (series("document"), DocumentState::Dead, 1)]
    );
}

pub async fn a_claim_is_bounded_by_the_bytes_of_its_documents<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    for _ in 0..5 {
        assign(&store, document("a")).await;
    }
    let bytes = "{\"title\":\"é\"}".len();
    let claim =
        |stop_at_bytes| ClaimRequest { series: series("document"), limit: 10, stop_at_bytes, ttl: LONG };
    assert_eq!(store.claim(claim(2 * bytes)).await.expect("a claim").len(), 2);
    assert_eq!(
        store.claim(claim(bytes + 1)).await.expect("a claim").len(),
        2,
        "the last document may exceed the limit"
    );
    assert_eq!(store.claim(claim(0)).await.expect("a claim").len(), 1, "one document is always claimed");
}

pub async fn an_attempt_from_before_a_retry_does_not_settle_the_next_one<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let document_id = assign(&store, document("a")).await.document_id;
    let old = claim(&store, 10, LONG).await;
    assert!(matches!(
        store.apply_action(document_id, DocumentAction::Retry, None).await,
        Ok(ActionOutcome::Done(_))
    ));
    assert!(
        find_document(&store, document_id).await.is_some_and(|document| document.in_doubt),
        "the outcome of its open attempt is unknown"
    );
    let new = claim(&store, 10, LONG).await;
    assert_eq!(settle(&store, &old, Verdict::Dead("too late".into())).await, 0);
    assert_eq!(settle(&store, &new, Verdict::Delivered).await, 1);
    assert_eq!(state(&store, document_id).await, DocumentState::Delivered);
}
