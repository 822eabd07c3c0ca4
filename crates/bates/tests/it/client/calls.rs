//! Every call of the client, against a server that can answer it.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use bates_client::{Document, Error};
use serde_json::json;

use super::Stage;

const SCOPE: [(&str, &str); 2] = [("project", "PROJ"), ("type", "9012")];

#[tokio::test]
async fn numbers_come_one_by_one_and_many_at_a_time_from_their_scope() {
    let stage = Stage::new();
    let documents = stage.client().series("document").scope(SCOPE);
    assert_eq!(documents.next().await.unwrap(), "PROJ-9012-1001");
    assert_eq!(documents.take(2).await.unwrap(), ["PROJ-9012-1002", "PROJ-9012-1003"]);
    assert_eq!(documents.take(0).await.unwrap(), [""; 0]);
    let other = documents.clone().scope([("project", "P"), ("type", "1")]);
    assert_eq!(other.next().await.unwrap(), "P-1-1001");
    let peek = documents.peek().await.unwrap();
    assert_eq!((peek.exists, peek.last, peek.next), (true, Some(1003), Some(1004)));
    let invoices = stage.client().series("invoice").date("2025-12-31".parse().unwrap());
    assert_eq!(invoices.next().await.unwrap(), "INV-2025-000001");
    assert_eq!(invoices.peek().await.unwrap().last, Some(1));
    let later = invoices.date("2026-01-01".parse().unwrap());
    assert_eq!(later.take(2).await.unwrap(), ["INV-2026-000001", "INV-2026-000002"]);
}

#[tokio::test]
async fn taking_more_numbers_than_fit_in_one_answer_makes_several_requests() {
    let stage = Stage::new();
    let tickets = stage.client().series("ticket");
    let taken = tickets.take(200_001).await.unwrap();
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 200_001);
    assert_eq!((&*taken[0], &*taken[200_000]), ("T-1", "T-200001"));
}

#[tokio::test]
async fn the_end_of_a_scope_gives_fewer_numbers_and_then_an_exhausted_error() {
    let stage = Stage::new();
    let digits = stage.client().series("digit");
    assert_eq!(digits.take(100_000).await.unwrap().len(), 9);
    for error in [digits.next().await.unwrap_err(), digits.take(3).await.unwrap_err()] {
        assert!(matches!(error, Error::Exhausted { .. }), "{error}");
        assert_eq!((error.code(), error.is_retryable(), error.may_burn()), (Some("exhausted"), false, false));
        assert!(error.to_string().contains("\"digit\""), "{error}");
    }
}

#[tokio::test]
async fn documents_are_numbered_delivered_and_looked_up() {
    let stage = Stage::new();
    let (client, plans) = (stage.client(), stage.client().series("document").scope(SCOPE));
    let plan = Document::new(&json!({"title": "Plan"})).unwrap();
    let assigned = plans.assign(&plan).await.unwrap();
    assert_eq!(assigned.id, "PROJ-9012-1001");
    assert_eq!(
        plans.assign(&plan).await.unwrap().event,
        assigned.event,
        "the same document keeps its number"
    );
    let other = Document::new(&json!({"title": "Plan"})).unwrap();
    assert_eq!(
        plans.assign(&other).await.unwrap().id,
        "PROJ-9012-1002",
        "another document with the same text"
    );
    let status = loop {
        let status = client.document(&assigned.id).await.unwrap();
        if status.state == "delivered" {
            break status;
        }
    };
    assert_eq!((&status.event, status.position, &*status.series), (&assigned.event, Some(1001), "document"));
    assert_eq!(status.scope, SCOPE.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(plans.document(&assigned.event).await.unwrap().id, assigned.id);
    while client.outbox_counts().await.unwrap()["document"].get("delivered") != Some(&2) {}
    let refused = client.abandon(&assigned.id).await.unwrap_err();
    assert_eq!(refused.code(), Some("wrong_state"), "{refused}");
    assert_eq!(client.retry(&assigned.event).await.unwrap_err().code(), Some("wrong_state"));
    let page = client.outbox().series("document").state("delivered").next_page().await.unwrap().unwrap();
    assert_eq!(page.len(), 2);
}

/// A key with quotes and spaces is the same key in a request header and in a line of a stream.
#[tokio::test]
async fn a_key_means_the_same_in_a_single_request_and_in_a_stream() {
    let stage = Stage::new();
    let bills = stage.client().series("bill");
    let bill =
        |key: &str, title: &str| Document::new(&json!({"title": title})).unwrap().with_key(key).unwrap();
    let keys = ["order-4711", "\"quoted\"", " spaced ", "a\"b\\c", "~"];
    let mut numbers = Vec::new();
    for key in keys {
        numbers.push(bills.assign(&bill(key, "x")).await.unwrap().id);
    }
    let documents: Vec<Document> = keys.map(|key| bill(key, "x")).into();
    let again = bills.assign_all(&documents).await.unwrap();
    assert_eq!(again.into_iter().map(|one| one.unwrap().id).collect::<Vec<_>>(), numbers);
    assert_eq!(numbers, ["B-1", "B-2", "B-3", "B-4", "B-5"]);
    assert_eq!(bills.assign(&bill("order-4711", "y")).await.unwrap_err().code(), Some("key_reused"));
}

#[tokio::test]
async fn each_of_many_documents_gets_its_own_answer_in_order() {
    let stage = Stage::new();
    let bills = stage.client().series("bill");
    let mut documents: Vec<Document> = (0..2_500).map(|at| Document::new(&at).unwrap()).collect();
    // Larger than a document may be; the others still get numbers.
    documents[1_200] = Document::new(&"x".repeat(2 * 1024 * 1024)).unwrap();
    documents[1_300] = Document::new(&()).unwrap();
    let answers = bills.assign_all(&documents).await.unwrap();
    assert_eq!(answers.len(), documents.len());
    let codes: Vec<_> =
        answers.iter().enumerate().filter_map(|(at, one)| Some((at, one.as_ref().err()?.code()))).collect();
    assert_eq!(codes, [(1_200, Some("too_large")), (1_300, Some("bad_document"))]);
    let numbers: BTreeSet<&String> = answers.iter().flatten().map(|one| &one.id).collect();
    assert_eq!(numbers.len(), 2_498);
    let again = bills.assign_all(&documents).await.unwrap();
    for (first, again) in answers.iter().flatten().zip(again.iter().flatten()) {
        assert_eq!((&first.id, &first.event), (&again.id, &again.event));
    }
}

#[tokio::test]
async fn reservations_are_confirmed_or_voided_and_a_repeat_changes_nothing() {
    let stage = Stage::new();
    let (client, bills) = (stage.client(), stage.client().series("bill"));
    let duration = Duration::from_mins(15);
    let (confirmed, voided) =
        (bills.reserve(duration).await.unwrap(), bills.reserve(duration).await.unwrap());
    assert_eq!((&*confirmed.id, &*confirmed.state, &*voided.id), ("B-1", "reserved", "B-2"));
    assert!(confirmed.deadline.is_some());
    for _ in 0..2 {
        assert_eq!(client.confirm(&confirmed.token).await.unwrap().state, "confirmed");
        assert_eq!(client.void(&voided.token).await.unwrap().state, "voided");
    }
    assert_eq!(client.void(&confirmed.token).await.unwrap_err().code(), Some("wrong_state"));
    assert_eq!(
        client.confirm(&confirmed.id).await.unwrap_err().code(),
        Some("unknown_document"),
        "a number is not a token"
    );
    let once = bills.reserve_once("r 1", duration).await.unwrap();
    assert_eq!(bills.reserve_once("r 1", duration).await.unwrap().token, once.token);
    let reconciled = bills.reconcile().await.unwrap();
    assert_eq!((reconciled.gaps, reconciled.missing), (1, 1));
    let gaps = bills.gaps().collect(10).await.unwrap();
    assert_eq!((gaps.len(), gaps[0].first, gaps[0].last, &*gaps[0].reason), (1, 2, 2, "voided"));
}

#[tokio::test]
async fn gaps_come_in_pages_and_collect_respects_its_limit() {
    let stage = Stage::new();
    let (client, plans) = (stage.client(), stage.client().series("document").scope(SCOPE));
    for at in 0..10 {
        let reserved = plans.reserve(Duration::from_mins(1)).await.unwrap();
        // Void every second number, so that no two gaps are adjacent.
        match at % 2 {
            0 => client.void(&reserved.token).await.unwrap(),
            _ => client.confirm(&reserved.token).await.unwrap(),
        };
    }
    assert_eq!(client.reconcile().await.unwrap().gaps, 5);
    let mut pages = plans.gaps().page(2);
    let mut firsts = Vec::new();
    while let Some(page) = pages.next_page().await.unwrap() {
        assert!(page.len() <= 2 && firsts.len() < 5, "{firsts:?}");
        firsts.extend(page.iter().map(|gap| gap.first));
    }
    assert_eq!(firsts, [1001, 1003, 1005, 1007, 1009]);
    assert_eq!(pages.next_page().await.unwrap(), None);
    assert_eq!(client.gaps().page(2).collect(3).await.unwrap().len(), 3);
    let elsewhere = plans.scope([("project", "NO"), ("type", "1")]);
    assert_eq!(elsewhere.gaps().collect(10).await.unwrap_err().code(), Some("unknown_scope"));
}

#[tokio::test]
async fn validate_judges_a_number_and_find_traces_it() {
    let stage = Stage::new();
    let (client, farmers) = (stage.client(), stage.client().series("farmer"));
    let farmer = farmers.next().await.unwrap();
    assert!(farmers.validate(&farmer).await.unwrap().valid);
    let verdict = farmers.validate("12/../x?y#z").await.unwrap();
    assert!(!verdict.valid && !verdict.reasons.is_empty(), "{verdict:?}");
    assert!(verdict.reasons.iter().all(|reason| !reason.code.is_empty() && !reason.message.is_empty()));
    let trace = client.find(&farmer).await.unwrap();
    assert_eq!(
        (&trace.id, &*trace.matches[0].series, trace.matches[0].granted),
        (&farmer.to_string(), "farmer", Some(true))
    );
    assert_eq!(client.find("no such thing").await.unwrap_err().code(), Some("unknown_id"));
}
