//! The conformance suite of outboxes: what every store must do with documents.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    ActionOutcome, AssignError, AssignRequest, Assignment, ClaimRequest, Claimed, Document, DocumentAction,
    DocumentContent, DocumentFilter, DocumentState, GrantError, Idempotency, Settlement, Store, Verdict,
};
use bates_pattern::{Options, Pattern, Reject};
use uuid::Uuid;

use super::exercise::{DataSet, definition, scope_id, series};

/// Longer than any test takes.
pub(super) const LONG: Duration = Duration::from_hours(1);

pub(super) async fn opened<D: DataSet>(data: &D) -> D::Store {
    let store = data.open().await;
    for name in ["document", "other"] {
        store.pin(definition(name), None).await.expect("a first pin");
    }
    store
}

pub(super) fn numbered(scope: &str, content: DocumentContent) -> AssignRequest {
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
        content,
        audit_stamp: None,
    }
}

pub(super) fn document(scope: &str) -> AssignRequest {
    numbered(scope, DocumentContent::Document("{\"title\":\"é\"}".into()))
}

pub(super) fn keyed(scope: &str, key: &str, content: u8) -> AssignRequest {
    let idempotency = Idempotency { caller: "somebody".into(), key: key.into(), digest: [content; 32] };
    AssignRequest { idempotency: Some(idempotency), ..document(scope) }
}

pub(super) async fn assignment(store: &impl Store, assign: AssignRequest) -> Assignment {
    store.assign(assign).await.expect("a number")
}

pub(super) async fn found(store: &impl Store, document_id: Uuid) -> Option<Document> {
    let filter = DocumentFilter { document_id: Some(document_id), ..DocumentFilter::default() };
    store.documents(filter, None, 10).await.expect("a read").pop()
}

pub(super) async fn state(store: &impl Store, document_id: Uuid) -> DocumentState {
    found(store, document_id).await.expect("it is there").state
}

pub(super) async fn claimed(store: &impl Store, limit: usize, lasts: Duration) -> Vec<Claimed> {
    let claim = ClaimRequest { series: series("document"), limit, bytes: usize::MAX, ttl: lasts };
    store.claim(claim).await.expect("a claim")
}

fn settlement(claimed: &Claimed, verdict: Verdict) -> Settlement {
    Settlement { document_id: claimed.document_id, attempt: claimed.attempt, verdict }
}

pub(super) async fn settled(store: &impl Store, claimed: &[Claimed], verdict: Verdict) -> u64 {
    let all = claimed.iter().map(|claimed| settlement(claimed, verdict.clone())).collect();
    store.settle_claims(all).await.expect("a write")
}

async fn issued(store: &impl Store, scope: &str) -> Vec<(u64, u64)> {
    let ledger = store.issued_ranges(scope_id(scope)).await.expect("a read");
    ledger.iter().map(|lease| (lease.from(), lease.to())).collect()
}

pub async fn a_document_is_numbered_written_and_in_the_ledger<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let ask = document("a");
    let given = assignment(&store, ask.clone()).await;
    assert_eq!(
        (&*given.number, given.position.value(), given.state),
        ("a-1001", 1001, DocumentState::Pending)
    );
    assert!(given.is_new && given.document_id == ask.document_id);
    drop(store);
    let store = data.open().await;
    let kept = found(&store, given.document_id).await.expect("it is there");
    assert_eq!((kept.scope_id, &*kept.number, kept.position.value()), (scope_id("a"), "a-1001", 1001));
    assert_eq!((kept.state, kept.attempts, kept.last_error), (DocumentState::Pending, 0, None));
    assert_eq!(issued(&store, "a").await, [(1001, 1002)]);
    assert_eq!(&*assignment(&store, document("a")).await.number, "a-1002");
    assert_eq!(issued(&store, "a").await, [(1001, 1003)]);
    let [first, second] = &*claimed(&store, 10, LONG).await else { panic!("both are due") };
    assert_eq!((&*first.number, &*second.number, &*first.body), ("a-1001", "a-1002", "{\"title\":\"é\"}"));
}

pub async fn documents_that_come_together_get_each_its_own_number<D: DataSet>(data: &D) {
    const DOCUMENTS: usize = 200;
    let store = Arc::new(opened(data).await);
    let asks: Vec<_> = (0..DOCUMENTS)
        .map(|at| {
            let store = store.clone();
            tokio::spawn(async move { assignment(&*store, document(["a", "b", "c"][at % 3])).await })
        })
        .collect();
    let mut by_scope: BTreeMap<char, Vec<u64>> = BTreeMap::new();
    for ask in asks {
        let given = ask.await.expect("it ends");
        by_scope.entry(given.number.chars().next().unwrap_or(' ')).or_default().push(given.position.value());
    }
    for (scope, mut positions) in by_scope {
        positions.sort_unstable();
        let expected: Vec<u64> = (1001..).take(positions.len()).collect();
        assert_eq!(positions, expected, "{scope}: each once, and no hole");
    }
    assert_eq!(claimed(&*store, DOCUMENTS * 2, LONG).await.len(), DOCUMENTS);
}

pub async fn the_same_request_gets_the_same_number_and_another_is_refused<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let first = assignment(&store, keyed("a", "k", 1)).await;
    drop(store);
    let store = data.open().await;
    let again = assignment(&store, keyed("a", "k", 1)).await;
    assert_eq!(again, Assignment { is_new: false, ..first.clone() });
    assert_eq!(store.assign(keyed("a", "k", 2)).await, Err(AssignError::KeyReused));
    assert_eq!(store.assign(keyed("b", "k", 2)).await, Err(AssignError::KeyReused));
    let mut elsewhere = keyed("a", "k", 2);
    elsewhere.scope_id.series = series("other");
    assert!(assignment(&store, elsewhere).await.is_new, "keys belong to a series");
    let mut another = keyed("a", "k", 2);
    another.idempotency.as_mut().expect("it has one").caller = "another".into();
    assert_eq!(&*assignment(&store, another).await.number, "a-1002", "and to a caller");
    let claims = claimed(&store, 10, LONG).await;
    settled(&store, &claims, Verdict::Delivered).await;
    let late = assignment(&store, keyed("a", "k", 1)).await;
    assert_eq!((late.document_id, late.state), (first.document_id, DocumentState::Delivered));
    assert_eq!(issued(&store, "a").await, [(1001, 1003)], "nothing was taken for what was there");
}

pub async fn the_same_request_many_times_at_once_is_numbered_once<D: DataSet>(data: &D) {
    let store = Arc::new(opened(data).await);
    let asks: Vec<_> = (0..60)
        .map(|at| {
            let store = store.clone();
            let key = format!("key {}", at % 3);
            tokio::spawn(async move { (at % 3, assignment(&*store, keyed("a", &key, 1)).await) })
        })
        .collect();
    let mut numbers: BTreeMap<usize, HashSet<Box<str>>> = BTreeMap::new();
    let mut firsts = 0;
    for ask in asks {
        let (key, given) = ask.await.expect("it ends");
        firsts += usize::from(given.is_new);
        numbers.entry(key).or_default().insert(given.number);
    }
    assert!(numbers.values().all(|numbers| numbers.len() == 1), "{numbers:?}");
    assert_eq!((firsts, claimed(&*store, 100, LONG).await.len()), (3, 3));
    assert_eq!(issued(&*store, "a").await, [(1001, 1004)]);
}

pub async fn a_number_is_refused_and_nothing_written_where_there_is_none<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let short = || AssignRequest { end: 1002, ..keyed("a", "first", 1) };
    assert_eq!(assignment(&store, short()).await.position.value(), 1001);
    let exhausted = store.assign(AssignRequest { end: 1002, ..keyed("a", "second", 1) }).await;
    assert_eq!(exhausted, Err(AssignError::Grant(GrantError::Exhausted { left: 0, elsewhere: false })));
    let many = store.assign(AssignRequest { scopes_max: 1, ..keyed("b", "third", 1) }).await;
    assert_eq!(many, Err(AssignError::Grant(GrantError::TooManyScopes(1))));
    let mut unknown = keyed("a", "fourth", 1);
    unknown.scope_id.series = series("never");
    assert!(store.assign(unknown).await.is_err());
    assert_eq!(claimed(&store, 10, LONG).await.len(), 1, "what was refused is not there");
    for key in ["second", "third"] {
        assert!(assignment(&store, keyed("a", key, 2)).await.is_new, "a refused request leaves its key");
    }
    assert_eq!(&*assignment(&store, short()).await.number, "a-1001", "also when the space has ended");
}

pub async fn positions_that_the_rules_reject_are_skipped<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let reject = Reject::default().with_restricted(&["100"]).expect("a word");
    let pattern = Pattern::compile("{scope}-{seq}", Options { reject, ..Options::default() }).expect("good");
    let scope = Arc::new(pattern.scope([("scope", "a")], None).expect("a good scope"));
    let careful = || AssignRequest { scope: scope.clone(), ..document("a") };
    let numbers = [assignment(&store, careful()).await.number, assignment(&store, careful()).await.number];
    assert_eq!(numbers, ["a-1010".into(), "a-1011".into()]);
    assert_eq!(issued(&store, "a").await, [(1010, 1012)], "what is rejected is not issued");
}

pub async fn a_reservation_is_confirmed_or_voided_in_time<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let given = assignment(&store, numbered("a", DocumentContent::Reservation(LONG))).await;
        assert_eq!(given.state, DocumentState::Reserved);
        tokens.push(given.document_id);
    }
    assert_eq!(store.expire_reservations(10).await, Ok(0));
    assert!(claimed(&store, 10, LONG).await.is_empty(), "there is nothing to deliver");
    for (token, decision, other) in [
        (tokens[0], DocumentAction::Confirm, DocumentAction::Void),
        (tokens[1], DocumentAction::Void, DocumentAction::Confirm),
    ] {
        assert!(matches!(
            store.apply_action(token, DocumentAction::Retry).await,
            Ok(ActionOutcome::Refused(_))
        ));
        assert!(matches!(store.apply_action(token, decision).await, Ok(ActionOutcome::Done(_))));
        assert!(
            matches!(store.apply_action(token, decision).await, Ok(ActionOutcome::Done(_))),
            "twice is once"
        );
        assert!(matches!(store.apply_action(token, other).await, Ok(ActionOutcome::Refused(_))));
    }
    assert_eq!(
        assignment(&store, document("a")).await.position.value(),
        1003,
        "what was voided never comes again"
    );
}

pub async fn a_reservation_whose_time_is_over_is_voided<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let token =
        assignment(&store, numbered("a", DocumentContent::Reservation(Duration::ZERO))).await.document_id;
    let late = store.apply_action(token, DocumentAction::Confirm).await.expect("a write");
    assert!(matches!(late, ActionOutcome::Refused(_)), "{late:?}");
    store.expire_reservations(10).await.expect("a write");
    assert_eq!(state(&store, token).await, DocumentState::Voided);
    assert_eq!(store.expire_reservations(10).await, Ok(0));
}

pub async fn what_was_delivered_is_pruned_and_its_key_and_number_stay<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let first = assignment(&store, keyed("a", "k", 1)).await;
    let dead = assignment(&store, document("a")).await.document_id;
    let claims = claimed(&store, 2, LONG).await;
    settled(&store, &claims[..1], Verdict::Delivered).await;
    settled(&store, &claims[1..], Verdict::Dead("down".into())).await;
    assert_eq!(store.prune_documents(LONG, 10).await, Ok(0), "it is not old enough");
    assert_eq!(store.prune_documents(Duration::ZERO, 10).await, Ok(1));
    assert_eq!(found(&store, first.document_id).await, None);
    assert_eq!(state(&store, dead).await, DocumentState::Dead, "what is dead waits for somebody to decide");
    let again = assignment(&store, keyed("a", "k", 1)).await;
    assert_eq!((&again.number, again.state, again.is_new), (&first.number, DocumentState::Delivered, false));
    assert_eq!(issued(&store, "a").await, [(1001, 1003)]);
}

pub async fn documents_are_listed_in_pages_and_by_what_is_asked<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let mut events = Vec::new();
    for scope in ["a", "b", "a", "b", "a"] {
        events.push(assignment(&store, document(scope)).await.document_id);
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.documents(DocumentFilter::default(), after, 2).await.expect("a page");
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        seen.extend(page.into_iter().map(|document| document.id));
    }
    events.sort_unstable();
    assert_eq!(seen, events);
    let listed = async |filter| store.documents(filter, None, 10).await.expect("a read").len();
    let all = DocumentFilter::default;
    assert_eq!(listed(DocumentFilter { scope: Some(scope_id("a").scope), ..all() }).await, 3);
    assert_eq!(listed(DocumentFilter { series: Some(series("other")), ..all() }).await, 0);
    assert_eq!(listed(DocumentFilter { number: Some("b-1002".into()), ..all() }).await, 1);
    assert_eq!(listed(DocumentFilter { state: Some(DocumentState::Dead), ..all() }).await, 0);
}
