//! Claims in a shared store: several nodes deliver, and any of them may be gone before it says what became of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{ActionOutcome, DocumentAction, DocumentFilter, DocumentState, Settlement, Verdict};
use bates_postgres::{OpenMode, Settings};

use super::documents::{LONG, claimed, counted, document, started};
use super::proxy::Cut;
use super::unknown::behind_proxy;
use super::{connect, opened};

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_two_nodes_share_no_document() {
    const DOCUMENTS: usize = 300;
    let (server, first) = started(Settings::default()).await;
    let second = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let stores = [Arc::new(first), Arc::new(second)];
    for _ in 1..DOCUMENTS {
        stores[0].assign(document("a")).await.unwrap();
    }
    let relays: Vec<_> = (0..8)
        .map(|at| {
            let store = stores[at % 2].clone();
            tokio::spawn(async move {
                let mut events = Vec::new();
                loop {
                    let claims = claimed(&store, 7, LONG).await;
                    if claims.is_empty() {
                        return events;
                    }
                    events.extend(claims.into_iter().map(|claimed| claimed.document_id));
                }
            })
        })
        .collect();
    let mut events = Vec::new();
    for relay in relays {
        events.extend(relay.await.unwrap());
    }
    // A relay that saw only what others were claiming stopped early: none of that is left over.
    events.extend(claimed(&stores[0], DOCUMENTS, LONG).await.into_iter().map(|claimed| claimed.document_id));
    assert_eq!((events.len(), events.iter().collect::<HashSet<_>>().len()), (DOCUMENTS, DOCUMENTS));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_waits_for_nobody() {
    let (server, store) = started(Settings::default()).await;
    store.assign(document("a")).await.unwrap();
    let other = connect(&server.url()).await;
    other.batch_execute("BEGIN; SELECT * FROM bates.document WHERE position = 1 FOR UPDATE").await.unwrap();
    let claims = claimed(&store, 10, LONG).await;
    assert_eq!(claims.iter().map(|claimed| &*claimed.number).collect::<Vec<_>>(), ["a-2"]);
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(claimed(&store, 10, LONG).await.len(), 1);
}

/// Fault 18, on the store's side: its claim ends by itself, and a verdict that comes late counts for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_whose_claimer_is_gone_is_claimed_by_another_node() {
    let (server, store) = started(Settings::default()).await;
    let lost = claimed(&store, 1, Duration::from_millis(300)).await;
    drop(store);
    let store = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let again = loop {
        if let Some(claimed) = claimed(&store, 1, LONG).await.pop() {
            break claimed;
        }
    };
    assert_eq!((again.document_id, lost[0].attempt, again.attempt), (lost[0].document_id, 1, 2));
    let settled = |attempt, verdict| vec![Settlement { document_id: again.document_id, attempt, verdict }];
    assert_eq!(store.settle_claims(settled(1, Verdict::Dead("late".into()))).await, Ok(0));
    assert_eq!(store.settle_claims(settled(2, Verdict::Delivered)).await, Ok(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_or_verdict_whose_answer_is_lost_is_neither_lost_nor_done_twice() {
    let (server, proxy, store) = behind_proxy(Duration::from_secs(30)).await;
    let document_id = store.assign(document("a")).await.unwrap().document_id;
    proxy.cut(Cut::Before);
    // Until PostgreSQL has noticed that the first try is gone, it holds the document.
    let first = loop {
        if let Some(claimed) = claimed(&store, 1, Duration::ZERO).await.pop() {
            break claimed;
        }
    };
    assert_eq!(first.attempt, 1, "it was never made");
    proxy.cut(Cut::After);
    assert!(claimed(&store, 1, LONG).await.is_empty(), "it was made, and nobody knows of it");
    let client = connect(&server.url()).await;
    // As if its time had come.
    client.batch_execute("UPDATE bates.document SET due_at = now()").await.unwrap();
    let claims = claimed(&store, 1, LONG).await;
    assert_eq!((claims[0].document_id, claims[0].attempt), (document_id, 3));
    for cut in [Cut::Before, Cut::After] {
        proxy.cut(cut);
        let verdict = Verdict::RetryAfter(Duration::ZERO, "down".into());
        let settled =
            store.settle_claims(vec![Settlement { document_id, attempt: 3, verdict }]).await.unwrap();
        assert_eq!(settled, u64::from(cut == Cut::Before), "{cut:?}");
    }
    proxy.cut(Cut::After);
    assert!(
        matches!(store.apply_action(document_id, DocumentAction::Abandon).await, Ok(ActionOutcome::Done(_))),
        "twice is once"
    );
    let kept = store.documents(DocumentFilter::default(), None, 10).await.unwrap();
    assert_eq!((kept.len(), kept[0].state, kept[0].attempts), (1, DocumentState::Abandoned, 3));
}

/// Verdicts and decisions about the same documents, each in another order: none waits for one that waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn verdicts_and_decisions_in_any_order_never_deadlock() {
    const DOCUMENTS: usize = 200;
    let (server, first) = started(Settings::default()).await;
    let second = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    for _ in 1..DOCUMENTS {
        first.assign(document("a")).await.unwrap();
    }
    for _ in 0..10 {
        let claims = claimed(&first, DOCUMENTS, LONG).await;
        assert_eq!(claims.len(), DOCUMENTS);
        let failed = |verdict: Verdict| {
            move |claimed: &bates_core::Claimed| {
                let verdict = verdict.clone();
                Settlement { document_id: claimed.document_id, attempt: claimed.attempt, verdict }
            }
        };
        let again = failed(Verdict::RetryAfter(Duration::ZERO, "down".into()));
        let (forward, backward) =
            (claims.iter().map(&again).collect(), claims.iter().rev().map(&again).collect());
        let (one, other, retried) = tokio::join!(
            first.settle_claims(forward),
            second.settle_claims(backward),
            second.apply_action_to_all(DocumentFilter::default(), DocumentAction::Retry)
        );
        assert!(one.unwrap() + other.unwrap() <= DOCUMENTS as u64, "each try has one verdict");
        assert_eq!(retried, Ok(DOCUMENTS as u64));
        first.apply_action_to_all(DocumentFilter::default(), DocumentAction::Retry).await.unwrap();
    }
    drop((first, second));
    super::keys::no_deadlock(&server).await;
    let dead = "SELECT count(*) FROM bates.document WHERE state <> 'pending'";
    assert_eq!(counted(&connect(&server.url()).await, dead).await, 0);
}
