//! What every outbox must do with documents that are claimed, settled and decided on.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{Claim, Decided, Decision, Filter, State, Verdict};
use uuid::Uuid;

use super::exercise::{DataSet, place, series};
use super::outbox::{LONG, assigned, claimed, document, found, opened, settled, state};

pub async fn a_claim_is_for_one_and_its_verdict_for_the_try_that_claimed_it<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let event = assigned(&store, document("a")).await.event;
    let first = claimed(&store, 10, Duration::ZERO).await;
    assert_eq!(
        first.iter().map(|claimed| (claimed.event, claimed.attempt)).collect::<Vec<_>>(),
        [(event, 1)]
    );
    let second = claimed(&store, 10, LONG).await;
    assert_eq!(second[0].attempt, 2, "whoever sleeps through a claim loses it");
    assert!(claimed(&store, 10, LONG).await.is_empty(), "and whoever does not keeps it");
    assert_eq!(settled(&store, &first, Verdict::Delivered).await, 0);
    assert_eq!(settled(&store, &first, Verdict::Dead("late".into())).await, 0);
    assert_eq!(state(&store, event).await, State::Pending, "a late verdict changes nothing");
    assert_eq!(settled(&store, &second, Verdict::Delivered).await, 1);
    assert_eq!(settled(&store, &second, Verdict::Dead("twice".into())).await, 0);
    let kept = found(&store, event).await.expect("it is there");
    assert_eq!((kept.state, kept.tries, kept.due), (State::Delivered, 2, None));
}

pub async fn what_failed_comes_again_after_its_time_or_is_dead<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let event = assigned(&store, document("a")).await.event;
    let first = claimed(&store, 10, LONG).await;
    settled(&store, &first, Verdict::Again(LONG, "no answer \u{0}".into())).await;
    assert!(claimed(&store, 10, LONG).await.is_empty(), "its time has not come");
    let kept = found(&store, event).await.expect("it is there");
    assert!(kept.last_error.is_some_and(|error| error.starts_with("no answer")));
    assert!(kept.due.is_some_and(|due| due > kept.updated));
    let Decided::Done(_) = store.decide(event, Decision::Retry).await.expect("a write") else {
        panic!("refused")
    };
    let again = claimed(&store, 10, LONG).await;
    assert_eq!(again[0].attempt, 1, "its tries begin again");
    settled(&store, &again, Verdict::Again(Duration::ZERO, "soon".into())).await;
    let last = claimed(&store, 10, LONG).await;
    settled(&store, &last, Verdict::Dead("for good".into())).await;
    assert_eq!(state(&store, event).await, State::Dead);
    assert!(claimed(&store, 10, LONG).await.is_empty());
}

pub async fn those_with_the_fewest_tries_are_claimed_first<D: DataSet>(data: &D) {
    let store = opened(data).await;
    assigned(&store, document("a")).await;
    let old = claimed(&store, 1, LONG).await;
    settled(&store, &old, Verdict::Again(Duration::ZERO, "again".into())).await;
    let new = assigned(&store, document("a")).await.event;
    assert_eq!(claimed(&store, 1, LONG).await[0].event, new, "one bad document holds up nothing");
    assert_eq!(claimed(&store, 1, LONG).await[0].event, old[0].event);
}

pub async fn claims_made_together_share_no_document<D: DataSet>(data: &D) {
    let store = Arc::new(opened(data).await);
    for _ in 0..40 {
        assigned(&*store, document("a")).await;
    }
    let claims: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { claimed(&*store, 7, LONG).await })
        })
        .collect();
    let mut events = Vec::new();
    for claim in claims {
        events.extend(claim.await.expect("it ends").into_iter().map(|claimed| claimed.event));
    }
    events.extend(claimed(&*store, 40, LONG).await.into_iter().map(|claimed| claimed.event));
    assert_eq!((events.len(), events.iter().collect::<HashSet<_>>().len()), (40, 40));
}

pub async fn a_dead_document_is_retried_or_abandoned_and_nothing_else_is<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let event = assigned(&store, document("a")).await.event;
    for decision in [Decision::Confirm, Decision::Void] {
        let refused = store.decide(event, decision).await.expect("a write");
        assert!(matches!(refused, Decided::Refused(document) if document.state == State::Pending));
    }
    let Decided::Done(left) = store.decide(event, Decision::Abandon).await.expect("a write") else {
        panic!()
    };
    assert_eq!((left.state, left.in_doubt), (State::Abandoned, false), "no try ever began");
    assert!(claimed(&store, 1, LONG).await.is_empty());
    assert!(matches!(store.decide(event, Decision::Abandon).await, Ok(Decided::Done(_))), "it is so already");
    assert!(matches!(store.decide(event, Decision::Retry).await, Ok(Decided::Refused(_))));
    assert_eq!(store.decide(Uuid::now_v7(), Decision::Retry).await, Ok(Decided::Unknown));
}

pub async fn a_document_that_is_being_delivered_is_not_abandoned<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let event = assigned(&store, document("a")).await.event;
    let claims = claimed(&store, 1, LONG).await;
    let waiting = assigned(&store, document("a")).await.event;
    let Decided::UnderWay(kept) = store.decide(event, Decision::Abandon).await.expect("a write") else {
        panic!("the sink may take it")
    };
    assert_eq!(kept.state, State::Pending);
    assert!(kept.due.is_some_and(|due| due > kept.created), "it says until when");
    assert_eq!(store.decide_all(Filter::default(), Decision::Abandon).await, Ok(1), "nor with all others");
    assert_eq!(state(&store, waiting).await, State::Abandoned);
    assert_eq!(settled(&store, &claims, Verdict::Delivered).await, 1, "its verdict still counts");
    assert_eq!(state(&store, event).await, State::Delivered);
}

pub async fn a_try_whose_outcome_is_not_known_leaves_a_doubt<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(assigned(&store, document("a")).await.event);
    }
    let doubts = async || {
        let all = store.documents(Filter::default(), None, 10).await.expect("a read");
        events.iter().map(|event| all.iter().any(|it| it.event == *event && it.in_doubt)).collect::<Vec<_>>()
    };
    let claims = claimed(&store, 5, Duration::ZERO).await;
    assert_eq!(claims.iter().map(|claimed| claimed.event).collect::<Vec<_>>(), events);
    assert_eq!(doubts().await, [false; 5], "the claims may still be settled");
    settled(&store, &claims[..1], Verdict::Again(LONG, "refused".into())).await;
    settled(&store, &claims[1..2], Verdict::Unanswered(Some(LONG), "no answer".into())).await;
    settled(&store, &claims[2..3], Verdict::Unanswered(None, "no answer".into())).await;
    assert_eq!(doubts().await, [false, true, true, false, false]);
    let states = [state(&store, events[1]).await, state(&store, events[2]).await];
    assert_eq!(states, [State::Pending, State::Dead]);
    assert!(matches!(store.decide(events[3], Decision::Abandon).await, Ok(Decided::Done(_))), "it ran out");
    let next = claimed(&store, 5, LONG).await;
    assert_eq!(next.iter().map(|claimed| claimed.event).collect::<Vec<_>>(), events[4..]);
    assert_eq!(doubts().await, [false, true, true, true, true], "their first tries were never settled");
    settled(&store, &next, Verdict::Dead("refused".into())).await;
    assert!(doubts().await[4], "what became of the second tells nothing of the first");
}

pub async fn decisions_about_all_touch_only_those_that_are_meant<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let mut events = Vec::new();
    for scope in ["a", "a", "b"] {
        events.push(assigned(&store, document(scope)).await.event);
    }
    let claims = claimed(&store, 10, LONG).await;
    settled(&store, &claims, Verdict::Dead("down".into())).await;
    let of_a = Filter { scope: Some(place("a").scope), state: Some(State::Dead), ..Filter::default() };
    assert_eq!(store.decide_all(of_a.clone(), Decision::Retry).await, Ok(2));
    assert_eq!(store.decide_all(of_a, Decision::Retry).await, Ok(0));
    assert_eq!(state(&store, events[2]).await, State::Dead);
    let tally = store.tally().await.expect("a read");
    assert_eq!(tally, [(series("document"), State::Pending, 2), (series("document"), State::Dead, 1)]);
}

pub async fn a_claim_is_bounded_by_the_bytes_of_its_documents<D: DataSet>(data: &D) {
    let store = opened(data).await;
    for _ in 0..5 {
        assigned(&store, document("a")).await;
    }
    let bytes = "{\"title\":\"é\"}".len();
    let claim = |bytes| Claim { series: series("document"), limit: 10, bytes, lasts: LONG };
    assert_eq!(store.claim(claim(2 * bytes)).await.expect("a claim").len(), 2);
    assert_eq!(store.claim(claim(bytes + 1)).await.expect("a claim").len(), 2, "one more than fits");
    assert_eq!(store.claim(claim(0)).await.expect("a claim").len(), 1, "a large one is claimed too");
}

pub async fn a_try_that_is_under_way_at_a_retry_does_not_settle_the_next_one<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let event = assigned(&store, document("a")).await.event;
    let old = claimed(&store, 10, LONG).await;
    assert!(matches!(store.decide(event, Decision::Retry).await, Ok(Decided::Done(_))));
    assert!(found(&store, event).await.is_some_and(|document| document.in_doubt), "its verdict is not heard");
    let new = claimed(&store, 10, LONG).await;
    assert_eq!(settled(&store, &old, Verdict::Dead("too late".into())).await, 0);
    assert_eq!(settled(&store, &new, Verdict::Delivered).await, 1);
    assert_eq!(state(&store, event).await, State::Delivered);
}
