//! Claims in a shared store: several nodes deliver, and any of them may stop before it reports the outcome.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{ActionOutcome, DocumentAction, DocumentFilter, DocumentState, Settlement, Verdict};
use bates_postgres::{OpenMode, Settings};

use super::documents::{LONG, claim, count, document, start_store};
use super::proxy::Cut;
use super::unknown_commits::behind_proxy;
use super::{connect, open_store};

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_never_claim_the_same_document() {
    const DOCUMENTS: usize = 300;
    let (server, first) = start_store(Settings::default()).await;
    let second = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let stores = [Arc::new(first), Arc::new(second)];
    for _ in 1..DOCUMENTS {
        stores[0].assign(document("a")).await.unwrap();
    }
    let relays: Vec<_> = (0..8)
        .map(|at| {
            let store = stores[at % 2].clone();
            tokio::spawn(async move {
                let mut ids = Vec::new();
                loop {
                    let claims = claim(&store, 7, LONG).await;
                    if claims.is_empty() {
                        return ids;
                    }
                    ids.extend(claims.into_iter().map(|claimed| claimed.document_id));
                }
            })
        })
        .collect();
    let mut ids = Vec::new();
    for relay in relays {
        ids.extend(relay.await.unwrap());
    }
    // A relay stops early if other relays were just claiming all that is left.
    ids.extend(claim(&stores[0], DOCUMENTS, LONG).await.into_iter().map(|claimed| claimed.document_id));
    assert_eq!((ids.len(), ids.iter().collect::<HashSet<_>>().len()), (DOCUMENTS, DOCUMENTS));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_skips_locked_documents_instead_of_waiting() {
    let (server, store) = start_store(Settings::default()).await;
    store.assign(document("a")).await.unwrap();
    let other = connect(&server.url()).await;
    other.batch_execute("BEGIN; SELECT * FROM bates.document WHERE position = 1 FOR UPDATE").await.unwrap();
    let claims = claim(&store, 10, LONG).await;
    assert_eq!(claims.iter().map(|claimed| &*claimed.number).collect::<Vec<_>>(), ["a-2"]);
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(claim(&store, 10, LONG).await.len(), 1);
}

/// Fault 18, on the side of the store: the claim expires, and a late verdict has no effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_whose_node_is_gone_is_claimed_by_another_node() {
    let (server, store) = start_store(Settings::default()).await;
    let lost = claim(&store, 1, Duration::from_millis(300)).await;
    drop(store);
    let store = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let again = loop {
        if let Some(claimed) = claim(&store, 1, LONG).await.pop() {
            break claimed;
        }
    };
    assert_eq!((again.document_id, lost[0].attempt, again.attempt), (lost[0].document_id, 1, 2));
    let settled = |attempt, verdict| vec![Settlement { document_id: again.document_id, attempt, verdict }];
    assert_eq!(store.settle_claims(settled(1, Verdict::Dead("late".into()))).await, Ok(0));
    assert_eq!(store.settle_claims(settled(2, Verdict::Delivered)).await, Ok(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_or_verdict_whose_answer_is_lost_takes_effect_once() {
    let (server, proxy, store) = behind_proxy(Duration::from_secs(30)).await;
    let document_id = store.assign(document("a")).await.unwrap().document_id;
    proxy.cut(Cut::Before);
    // The document stays locked until PostgreSQL notices that the first connection is gone.
    let first = loop {
        if let Some(claimed) = claim(&store, 1, Duration::ZERO).await.pop() {
            break claimed;
        }
    };
    assert_eq!(first.attempt, 1, "the cut claim was never committed");
    proxy.cut(Cut::After);
    assert!(claim(&store, 1, LONG).await.is_empty(), "the claim was committed, but its answer was lost");
    let client = connect(&server.url()).await;
    // The claim expires.
    client.batch_execute("UPDATE bates.document SET due_at = now()").await.unwrap();
    let claims = claim(&store, 1, LONG).await;
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
        matches!(
            store.apply_action(document_id, DocumentAction::Abandon, None).await,
            Ok(ActionOutcome::Done(_))
        ),
        "the repeated action has no further effect"
    );
    let documents = store.documents(DocumentFilter::default(), None, 10).await.unwrap();
    assert_eq!(
        (documents.len(), documents[0].state, documents[0].attempts),
        (1, DocumentState::Abandoned, 3)
    );
}

/// Verdicts and operator actions lock the same documents, each given in another order.
#[tokio::test(flavor = "multi_thread")]
async fn verdicts_and_actions_in_any_order_never_deadlock() {
    const DOCUMENTS: usize = 200;
    let (server, first) = start_store(Settings::default()).await;
    let second = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    for _ in 1..DOCUMENTS {
        first.assign(document("a")).await.unwrap();
    }
    for _ in 0..10 {
        let claims = claim(&first, DOCUMENTS, LONG).await;
        assert_eq!(claims.len(), DOCUMENTS);
        let failed = |verdict: Verdict| {
            move |claimed: &bates_core::Delivery| {
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
            second.apply_action_to_all(DocumentFilter::default(), DocumentAction::Retry, None)
        );
        assert!(one.unwrap() + other.unwrap() <= DOCUMENTS as u64, "each attempt has one verdict");
        assert_eq!(retried, Ok(DOCUMENTS as u64));
        first.apply_action_to_all(DocumentFilter::default(), DocumentAction::Retry, None).await.unwrap();
    }
    drop((first, second));
    super::keys::assert_no_deadlock(&server).await;
    let dead = "SELECT count(*) FROM bates.document WHERE state <> 'pending'";
    assert_eq!(count(&connect(&server.url()).await, dead).await, 0);
}
