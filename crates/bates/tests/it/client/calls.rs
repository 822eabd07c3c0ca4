//! Every call, against a server that has what is asked for.

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
async fn more_than_one_answer_holds_are_taken_in_several_calls() {
    let stage = Stage::new();
    let tickets = stage.client().series("ticket");
    let taken = tickets.take(200_001).await.unwrap();
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 200_001);
    assert_eq!((&*taken[0], &*taken[200_000]), ("T-1", "T-200001"));
}

#[tokio::test]
async fn the_end_of_a_scope_is_fewer_numbers_and_then_an_error_of_its_own() {
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
        "the same document, the same number"
    );
    let other = Document::new(&json!({"title": "Plan"})).unwrap();
    assert_eq!(plans.assign(&other).await.unwrap().id, "PROJ-9012-1002", "the same text, another document");
    let known = loop {
        let known = client.document(&assigned.id).await.unwrap();
        if known.state == "delivered" {
            break known;
        }
    };
    assert_eq!((&known.event, known.position, &*known.series), (&assigned.event, 1001, "document"));
    assert_eq!(known.scope, SCOPE.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(plans.document(&assigned.event).await.unwrap().id, assigned.id);
    while client.outbox_counts().await.unwrap()["document"].get("delivered") != Some(&2) {}
    let refused = client.abandon(&assigned.id).await.unwrap_err();
    assert_eq!(refused.code(), Some("wrong_state"), "{refused}");
    assert_eq!(client.retry(&assigned.event).await.unwrap_err().code(), Some("wrong_state"));
    let page = client.outbox().series("document").state("delivered").next_page().await.unwrap().unwrap();
    assert_eq!(page.len(), 2);
}

/// A key with quotes and spaces is the same key in the head of a request and in a line.
#[tokio::test]
async fn a_key_means_the_same_in_one_request_and_among_many() {
    let stage = Stage::new();
    let bills = stage.client().series("bill");
    let of = |key: &str, title: &str| Document::new(&json!({"title": title})).unwrap().with_key(key).unwrap();
    let keys = ["order-4711", "\"quoted\"", " spaced ", "a\"b\\c", "~"];
    let mut numbers = Vec::new();
    for key in keys {
        numbers.push(bills.assign(&of(key, "x")).await.unwrap().id);
    }
    let documents: Vec<Document> = keys.map(|key| of(key, "x")).into();
    let again = bills.assign_all(&documents).await.unwrap();
    assert_eq!(again.into_iter().map(|one| one.unwrap().id).collect::<Vec<_>>(), numbers);
    assert_eq!(numbers, ["B-1", "B-2", "B-3", "B-4", "B-5"]);
    assert_eq!(bills.assign(&of("order-4711", "y")).await.unwrap_err().code(), Some("key_reused"));
}

#[tokio::test]
async fn many_documents_are_answered_in_order_and_one_by_one() {
    let stage = Stage::new();
    let bills = stage.client().series("bill");
    let mut documents: Vec<Document> = (0..2_500).map(|at| Document::new(&at).unwrap()).collect();
    // More than a document may have; the others are numbered all the same.
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
async fn reservations_are_confirmed_or_voided_and_twice_is_once() {
    let stage = Stage::new();
    let (client, bills) = (stage.client(), stage.client().series("bill"));
    let lasts = Duration::from_mins(15);
    let (kept, given_up) = (bills.reserve(lasts).await.unwrap(), bills.reserve(lasts).await.unwrap());
    assert_eq!((&*kept.id, &*kept.state, &*given_up.id), ("B-1", "reserved", "B-2"));
    assert!(kept.deadline.is_some());
    for _ in 0..2 {
        assert_eq!(client.confirm(&kept.token).await.unwrap().state, "confirmed");
        assert_eq!(client.void(&given_up.token).await.unwrap().state, "voided");
    }
    assert_eq!(client.void(&kept.token).await.unwrap_err().code(), Some("wrong_state"));
    assert_eq!(client.confirm(&kept.id).await.unwrap_err().code(), Some("unknown_document"), "no token");
    let once = bills.reserve_once("r 1", lasts).await.unwrap();
    assert_eq!(bills.reserve_once("r 1", lasts).await.unwrap().token, once.token);
    let reconciled = bills.reconcile().await.unwrap();
    assert_eq!((reconciled.gaps, reconciled.missing), (1, 1));
    let gaps = bills.gaps().collect(10).await.unwrap();
    assert_eq!((gaps.len(), gaps[0].first, gaps[0].last, &*gaps[0].reason), (1, 2, 2, "voided"));
}

#[tokio::test]
async fn gaps_come_page_by_page_and_no_more_than_wanted() {
    let stage = Stage::new();
    let (client, plans) = (stage.client(), stage.client().series("document").scope(SCOPE));
    for at in 0..10 {
        let reserved = plans.reserve(Duration::from_mins(1)).await.unwrap();
        // Every second one, so that no two gaps are one.
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
    assert_eq!(elsewhere.gaps().collect(10).await.unwrap(), []);
}

#[tokio::test]
async fn identifiers_are_judged_and_traced() {
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
