//! The part of the conformance suite about assigning numbers to documents and reservations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    ActionOutcome, AssignError, AssignRequest, Assignment, ClaimRequest, Delivery, Document, DocumentAction,
    DocumentContent, DocumentFilter, DocumentState, GrantError, Idempotency, PruneGroup, Settlement, Store,
    Verdict,
};
use bates_pattern::{Options, Pattern, Reject};
use uuid::Uuid;

use super::exercise::{DataSet, definition, scope_id, series};

/// Longer than any test takes.
pub(super) const LONG: Duration = Duration::from_hours(1);

pub(super) async fn open_two_series<D: DataSet>(data: &D) -> D::Store {
    let store = data.open().await;
    for name in ["document", "other"] {
        store.pin(definition(name), None).await.expect("a first pin");
    }
    store
}

pub(super) fn assign_request(scope: &str, content: DocumentContent) -> AssignRequest {
    let pattern = Pattern::compile("{scope}-{seq}", Options::default()).expect("a good pattern");
    AssignRequest {
        scope_id: scope_id(scope),
        start: 1001,
        end: 100_000,
        scopes_max: 10,
        promise: None,
        scope: Arc::new(pattern.scope([("scope", scope)], None).expect("a good scope")),
        document_id: Uuid::now_v7(),
        idempotency: None,
        only_repeats: false,
        content,
        caller: "test".into(),
        audit_stamp: None,
    }
}

pub(super) fn document(scope: &str) -> AssignRequest {
    assign_request(scope, DocumentContent::Document("{\"title\":\"é\"}".into()))
}

pub(super) fn keyed_document(scope: &str, key: &str, content: u8) -> AssignRequest {
    let idempotency = Idempotency { caller: "shop".into(), key: key.into(), digest: [content; 32] };
    AssignRequest { idempotency: Some(idempotency), ..document(scope) }
}

pub(super) async fn assign(store: &impl Store, request: AssignRequest) -> Assignment {
    store.assign(request).await.expect("a number")
}

pub(super) async fn find_document(store: &impl Store, document_id: Uuid) -> Option<Document> {
    let filter = DocumentFilter { document_id: Some(document_id), ..DocumentFilter::default() };
    store.documents(filter, None, 10).await.expect("a read").pop()
}

pub(super) async fn state(store: &impl Store, document_id: Uuid) -> DocumentState {
    find_document(store, document_id).await.expect("the document exists").state
}

pub(super) async fn claim(store: &impl Store, limit: usize, ttl: Duration) -> Vec<Delivery> {
    let claim = ClaimRequest { series: series("document"), limit, stop_at_bytes: usize::MAX, ttl };
    store.claim(claim).await.expect("a claim")
}

fn settlement(claimed: &Delivery, verdict: Verdict) -> Settlement {
    Settlement { document_id: claimed.document_id, attempt: claimed.attempt, verdict }
}

pub(super) async fn settle(store: &impl Store, claimed: &[Delivery], verdict: Verdict) -> u64 {
    let all = claimed.iter().map(|claimed| settlement(claimed, verdict.clone())).collect();
    store.settle_claims(all).await.expect("a write")
}

pub(super) async fn issued(store: &impl Store, scope: &str) -> Vec<(u64, u64)> {
    let ranges = store.issued_ranges(scope_id(scope)).await.expect("a read");
    ranges.iter().map(|range| (range.from(), range.to())).collect()
}

pub async fn an_assigned_document_is_stored_and_in_the_ledger<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let request = document("a");
    let assignment = assign(&store, request.clone()).await;
    assert_eq!(
        (&*assignment.number, assignment.position.value(), assignment.state),
        ("a-1001", 1001, DocumentState::Pending)
    );
    assert!(assignment.is_new && assignment.document_id == request.document_id);
    drop(store);
    let store = data.open().await;
    let stored = find_document(&store, assignment.document_id).await.expect("the document exists");
    assert_eq!((stored.scope_id, &*stored.number, stored.position.value()), (scope_id("a"), "a-1001", 1001));
    assert_eq!((stored.state, stored.attempts, stored.last_error), (DocumentState::Pending, 0, None));
    assert_eq!(issued(&store, "a").await, [(1001, 1002)]);
    assert_eq!(&*assign(&store, document("a")).await.number, "a-1002");
    assert_eq!(issued(&store, "a").await, [(1001, 1003)]);
    let [first, second] = &*claim(&store, 10, LONG).await else { panic!("both are due") };
    assert_eq!((&*first.number, &*second.number, &*first.body), ("a-1001", "a-1002", "{\"title\":\"é\"}"));
}

pub async fn concurrent_documents_get_distinct_numbers_without_holes<D: DataSet>(data: &D) {
    const DOCUMENTS: usize = 200;
    let store = Arc::new(open_two_series(data).await);
    let tasks: Vec<_> = (0..DOCUMENTS)
        .map(|at| {
            let store = store.clone();
            tokio::spawn(async move { assign(&*store, document(["a", "b", "c"][at % 3])).await })
        })
        .collect();
    let mut by_scope: BTreeMap<char, Vec<u64>> = BTreeMap::new();
    for task in tasks {
        let assignment = task.await.expect("the task ends");
        by_scope
            .entry(assignment.number.chars().next().unwrap_or(' '))
            .or_default()
            .push(assignment.position.value());
    }
    for (scope, mut positions) in by_scope {
        positions.sort_unstable();
        let expected: Vec<u64> = (1001..).take(positions.len()).collect();
        assert_eq!(positions, expected, "{scope}: each position once, without holes");
    }
    assert_eq!(claim(&*store, DOCUMENTS * 2, LONG).await.len(), DOCUMENTS);
}

pub async fn a_refused_document_writes_nothing_and_frees_its_key<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let short = || AssignRequest { end: 1002, ..keyed_document("a", "first", 1) };
    assert_eq!(assign(&store, short()).await.position.value(), 1001);
    let exhausted = store.assign(AssignRequest { end: 1002, ..keyed_document("a", "second", 1) }).await;
    assert_eq!(exhausted, Err(AssignError::Grant(GrantError::Exhausted { left: 0, held_elsewhere: false })));
    let many = store.assign(AssignRequest { scopes_max: 1, ..keyed_document("b", "third", 1) }).await;
    assert_eq!(many, Err(AssignError::Grant(GrantError::TooManyScopes(1))));
    let mut unknown = keyed_document("a", "fourth", 1);
    unknown.scope_id.series = series("never");
    assert!(store.assign(unknown).await.is_err());
    assert_eq!(claim(&store, 10, LONG).await.len(), 1, "refused documents are not stored");
    for key in ["second", "third"] {
        assert!(
            assign(&store, keyed_document("a", key, 2)).await.is_new,
            "a refused request does not use its key"
        );
    }
    assert_eq!(
        &*assign(&store, short()).await.number,
        "a-1001",
        "a repeated key is answered even without space"
    );
}

pub async fn positions_that_the_rules_reject_are_skipped<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let reject = Reject::default().with_restricted(&["100"]).expect("a word");
    let pattern = Pattern::compile("{scope}-{seq}", Options { reject, ..Options::default() }).expect("good");
    let scope = Arc::new(pattern.scope([("scope", "a")], None).expect("a good scope"));
    let request = || AssignRequest { scope: scope.clone(), ..document("a") };
    let numbers = [assign(&store, request()).await.number, assign(&store, request()).await.number];
    assert_eq!(numbers, ["a-1010".into(), "a-1011".into()]);
    assert_eq!(issued(&store, "a").await, [(1010, 1012)], "rejected positions are not issued");
}

pub async fn a_reservation_can_be_confirmed_or_voided_until_it_expires<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let assignment = assign(&store, assign_request("a", DocumentContent::Reservation(LONG))).await;
        assert_eq!(assignment.state, DocumentState::Reserved);
        tokens.push(assignment.document_id);
    }
    assert_eq!(store.expire_reservations(10).await, Ok(0));
    assert!(claim(&store, 10, LONG).await.is_empty(), "a reservation is not delivered");
    for (token, action, other) in [
        (tokens[0], DocumentAction::Confirm, DocumentAction::Void),
        (tokens[1], DocumentAction::Void, DocumentAction::Confirm),
    ] {
        assert!(matches!(
            store.apply_action(token, DocumentAction::Retry, None).await,
            Ok(ActionOutcome::Refused(_))
        ));
        assert!(matches!(store.apply_action(token, action, None).await, Ok(ActionOutcome::Done(_))));
        assert!(
            matches!(store.apply_action(token, action, None).await, Ok(ActionOutcome::Done(_))),
            "repeating the action is no error"
        );
        assert!(matches!(store.apply_action(token, other, None).await, Ok(ActionOutcome::Refused(_))));
    }
    assert_eq!(
        assign(&store, document("a")).await.position.value(),
        1003,
        "a voided position is not granted again"
    );
}

pub async fn an_expired_reservation_is_voided<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let token =
        assign(&store, assign_request("a", DocumentContent::Reservation(Duration::ZERO))).await.document_id;
    let late = store.apply_action(token, DocumentAction::Confirm, None).await.expect("a write");
    assert!(matches!(late, ActionOutcome::Refused(_)), "{late:?}");
    store.expire_reservations(10).await.expect("a write");
    assert_eq!(state(&store, token).await, DocumentState::Voided);
    assert_eq!(store.expire_reservations(10).await, Ok(0));
}

pub async fn pruning_removes_delivered_documents_and_keeps_their_keys<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let first = assign(&store, keyed_document("a", "k", 1)).await;
    let dead = assign(&store, document("a")).await.document_id;
    let claims = claim(&store, 2, LONG).await;
    settle(&store, &claims[..1], Verdict::Delivered).await;
    settle(&store, &claims[1..], Verdict::Dead("down".into())).await;
    assert_eq!(store.prune_documents(PruneGroup::Delivered, LONG, 10).await, Ok(0), "nothing is old enough");
    assert_eq!(store.prune_documents(PruneGroup::Delivered, Duration::ZERO, 10).await, Ok(1));
    assert_eq!(find_document(&store, first.document_id).await, None);
    assert_eq!(state(&store, dead).await, DocumentState::Dead, "dead documents wait for an operator");
    let again = assign(&store, keyed_document("a", "k", 1)).await;
    assert_eq!((&again.number, again.state, again.is_new), (&first.number, DocumentState::Delivered, false));
    assert_eq!(issued(&store, "a").await, [(1001, 1003)]);
}

pub async fn documents_are_listed_in_pages_and_by_filter<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let mut ids = Vec::new();
    for scope in ["a", "b", "a", "b", "a"] {
        ids.push(assign(&store, document(scope)).await.document_id);
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.documents(DocumentFilter::default(), after, 2).await.expect("a page");
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        seen.extend(page.into_iter().map(|document| document.id));
    }
    ids.sort_unstable();
    assert_eq!(seen, ids);
    let listed = async |filter| store.documents(filter, None, 10).await.expect("a read").len();
    let all = DocumentFilter::default;
    assert_eq!(listed(DocumentFilter { scope: Some(scope_id("a").scope), ..all() }).await, 3);
    assert_eq!(listed(DocumentFilter { series: Some(series("other")), ..all() }).await, 0);
    assert_eq!(listed(DocumentFilter { number: Some("b-1002".into()), ..all() }).await, 1);
    assert_eq!(listed(DocumentFilter { state: Some(DocumentState::Dead), ..all() }).await, 0);
}
