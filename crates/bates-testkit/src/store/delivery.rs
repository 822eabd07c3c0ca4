//! What every outbox must do with documents that are claimed, settled and decided on.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{ActionOutcome, ClaimRequest, DocumentAction, DocumentFilter, DocumentState, Verdict};
use uuid::Uuid;

use super::exercise::{DataSet, scope_id, series};
use super::outbox::{LONG, assignment, claimed, document, found, opened, settled, state};

pub async fn a_claim_is_for_one_and_its_verdict_for_the_try_that_claimed_it<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let document_id = assignment(&store, document("a")).await.document_id;
    let first = claimed(&store, 10, Duration::ZERO).await;
    assert_eq!(
        first.iter().map(|claimed| (claimed.document_id, claimed.attempt)).collect::<Vec<_>>(),
        [(document_id, 1)]
    );
    let second = claimed(&store, 10, LONG).await;
    assert_eq!(second[0].attempt, 2, "whoever sleeps through a claim loses it");
    assert!(claimed(&store, 10, LONG).await.is_empty(), "and whoever does not keeps it");
    assert_eq!(settled(&store, &first, Verdict::Delivered).await, 0);
    assert_eq!(settled(&store, &first, Verdict::Dead("late".into())).await, 0);
    assert_eq!(state(&store, document_id).await, DocumentState::Pending, "a late verdict changes nothing");
    assert_eq!(settled(&store, &second, Verdict::Delivered).await, 1);
    assert_eq!(settled(&store, &second, Verdict::Dead("twice".into())).await, 0);
    let kept = found(&store, document_id).await.expect("it is there");
    assert_eq!((kept.state, kept.attempts, kept.due), (DocumentState::Delivered, 2, None));
}

pub async fn what_failed_comes_again_after_its_time_or_is_dead<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let document_id = assignment(&store, document("a")).await.document_id;
    let first = claimed(&store, 10, LONG).await;
    settled(&store, &first, Verdict::RetryAfter(LONG, "no answer \u{0}".into())).await;
    assert!(claimed(&store, 10, LONG).await.is_empty(), "its time has not come");
    let kept = found(&store, document_id).await.expect("it is there");
    assert!(kept.last_error.is_some_and(|error| error.starts_with("no answer")));
    assert!(kept.due.is_some_and(|due| due > kept.updated));
    let ActionOutcome::Done(_) =
        store.apply_action(document_id, DocumentAction::Retry).await.expect("a write")
    else {
        panic!("refused")
    };
    let again = claimed(&store, 10, LONG).await;
    assert_eq!(again[0].attempt, 1, "its tries begin again");
    settled(&store, &again, Verdict::RetryAfter(Duration::ZERO, "soon".into())).await;
    let last = claimed(&store, 10, LONG).await;
    settled(&store, &last, Verdict::Dead("for good".into())).await;
    assert_eq!(state(&store, document_id).await, DocumentState::Dead);
    assert!(claimed(&store, 10, LONG).await.is_empty());
}

pub async fn those_with_the_fewest_tries_are_claimed_first<D: DataSet>(data: &D) {
    let store = opened(data).await;
    assignment(&store, document("a")).await;
    let old = claimed(&store, 1, LONG).await;
    settled(&store, &old, Verdict::RetryAfter(Duration::ZERO, "again".into())).await;
    let new = assignment(&store, document("a")).await.document_id;
    assert_eq!(claimed(&store, 1, LONG).await[0].document_id, new, "one bad document holds up nothing");
    assert_eq!(claimed(&store, 1, LONG).await[0].document_id, old[0].document_id);
}

pub async fn claims_made_together_share_no_document<D: DataSet>(data: &D) {
    let store = Arc::new(opened(data).await);
    for _ in 0..40 {
        assignment(&*store, document("a")).await;
    }
    let claims: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { claimed(&*store, 7, LONG).await })
        })
        .collect();
    let mut events = Vec::new();
    for claim in claims {
        events.extend(claim.await.expect("it ends").into_iter().map(|claimed| claimed.document_id));
    }
    events.extend(claimed(&*store, 40, LONG).await.into_iter().map(|claimed| claimed.document_id));
    assert_eq!((events.len(), events.iter().collect::<HashSet<_>>().len()), (40, 40));
}

pub async fn a_dead_document_is_retried_or_abandoned_and_nothing_else_is<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let document_id = assignment(&store, document("a")).await.document_id;
    for decision in [DocumentAction::Confirm, DocumentAction::Void] {
        let refused = store.apply_action(document_id, decision).await.expect("a write");
        assert!(
            matches!(refused, ActionOutcome::Refused(document) if document.state == DocumentState::Pending)
        );
    }
    let ActionOutcome::Done(left) =
        store.apply_action(document_id, DocumentAction::Abandon).await.expect("a write")
    else {
        panic!()
    };
    assert_eq!((left.state, left.in_doubt), (DocumentState::Abandoned, false), "no try ever began");
    assert!(claimed(&store, 1, LONG).await.is_empty());
    assert!(
        matches!(store.apply_action(document_id, DocumentAction::Abandon).await, Ok(ActionOutcome::Done(_))),
        "it is so already"
    );
    assert!(matches!(
        store.apply_action(document_id, DocumentAction::Retry).await,
        Ok(ActionOutcome::Refused(_))
    ));
    assert_eq!(store.apply_action(Uuid::now_v7(), DocumentAction::Retry).await, Ok(ActionOutcome::Unknown));
}

pub async fn a_document_that_is_being_delivered_is_not_abandoned<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let document_id = assignment(&store, document("a")).await.document_id;
    let claims = claimed(&store, 1, LONG).await;
    let waiting = assignment(&store, document("a")).await.document_id;
    let ActionOutcome::UnderWay(kept) =
        store.apply_action(document_id, DocumentAction::Abandon).await.expect("a write")
    else {
        panic!("the sink may take it")
    };
    assert_eq!(kept.state, DocumentState::Pending);
    assert!(kept.due.is_some_and(|due| due > kept.created), "it says until when");
    assert_eq!(
        store.apply_action_to_all(DocumentFilter::default(), DocumentAction::Abandon).await,
        Ok(1),
        "nor with all others"
    );
    assert_eq!(state(&store, waiting).await, DocumentState::Abandoned);
    assert_eq!(settled(&store, &claims, Verdict::Delivered).await, 1, "its verdict still counts");
    assert_eq!(state(&store, document_id).await, DocumentState::Delivered);
}

pub async fn a_try_whose_outcome_is_not_known_leaves_a_doubt<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(assignment(&store, document("a")).await.document_id);
    }
    let doubts = async || {
        let all = store.documents(DocumentFilter::default(), None, 10).await.expect("a read");
        events
            .iter()
            .map(|document_id| all.iter().any(|it| it.id == *document_id && it.in_doubt))
            .collect::<Vec<_>>()
    };
    let claims = claimed(&store, 5, Duration::ZERO).await;
    assert_eq!(claims.iter().map(|claimed| claimed.document_id).collect::<Vec<_>>(), events);
    assert_eq!(doubts().await, [false; 5], "the claims may still be settled");
    settled(&store, &claims[..1], Verdict::RetryAfter(LONG, "refused".into())).await;
    settled(&store, &claims[1..2], Verdict::Unanswered(Some(LONG), "no answer".into())).await;
    settled(&store, &claims[2..3], Verdict::Unanswered(None, "no answer".into())).await;
    assert_eq!(doubts().await, [false, true, true, false, false]);
    let states = [state(&store, events[1]).await, state(&store, events[2]).await];
    assert_eq!(states, [DocumentState::Pending, DocumentState::Dead]);
    assert!(
        matches!(store.apply_action(events[3], DocumentAction::Abandon).await, Ok(ActionOutcome::Done(_))),
        "it ran out"
    );
    let next = claimed(&store, 5, LONG).await;
    assert_eq!(next.iter().map(|claimed| claimed.document_id).collect::<Vec<_>>(), events[4..]);
    assert_eq!(doubts().await, [false, true, true, true, true], "their first tries were never settled");
    settled(&store, &next, Verdict::Dead("refused".into())).await;
    assert!(doubts().await[4], "what became of the second tells nothing of the first");
}

pub async fn decisions_about_all_touch_only_those_that_are_meant<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let mut events = Vec::new();
    for scope in ["a", "a", "b"] {
        events.push(assignment(&store, document(scope)).await.document_id);
    }
    let claims = claimed(&store, 10, LONG).await;
    settled(&store, &claims, Verdict::Dead("down".into())).await;
    let of_a = DocumentFilter {
        scope: Some(scope_id("a").scope),
        state: Some(DocumentState::Dead),
        ..DocumentFilter::default()
    };
    assert_eq!(store.apply_action_to_all(of_a.clone(), DocumentAction::Retry).await, Ok(2));
    assert_eq!(store.apply_action_to_all(of_a, DocumentAction::Retry).await, Ok(0));
    assert_eq!(state(&store, events[2]).await, DocumentState::Dead);
    let tally = store.count_documents().await.expect("a read");
    assert_eq!(
        tally,
        [(series("document"), DocumentState::Pending, 2), (series("document"), DocumentState::Dead, 1)]
    );
}

pub async fn a_claim_is_bounded_by_the_bytes_of_its_documents<D: DataSet>(data: &D) {
    let store = opened(data).await;
    for _ in 0..5 {
        assignment(&store, document("a")).await;
    }
    let bytes = "{\"title\":\"é\"}".len();
    let claim = |bytes| ClaimRequest { series: series("document"), limit: 10, bytes, ttl: LONG };
    assert_eq!(store.claim(claim(2 * bytes)).await.expect("a claim").len(), 2);
    assert_eq!(store.claim(claim(bytes + 1)).await.expect("a claim").len(), 2, "one more than fits");
    assert_eq!(store.claim(claim(0)).await.expect("a claim").len(), 1, "a large one is claimed too");
}

pub async fn a_try_that_is_under_way_at_a_retry_does_not_settle_the_next_one<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let document_id = assignment(&store, document("a")).await.document_id;
    let old = claimed(&store, 10, LONG).await;
    assert!(matches!(
        store.apply_action(document_id, DocumentAction::Retry).await,
        Ok(ActionOutcome::Done(_))
    ));
    assert!(
        found(&store, document_id).await.is_some_and(|document| document.in_doubt),
        "its verdict is not heard"
    );
    let new = claimed(&store, 10, LONG).await;
    assert_eq!(settled(&store, &old, Verdict::Dead("too late".into())).await, 0);
    assert_eq!(settled(&store, &new, Verdict::Delivered).await, 1);
    assert_eq!(state(&store, document_id).await, DocumentState::Delivered);
}
