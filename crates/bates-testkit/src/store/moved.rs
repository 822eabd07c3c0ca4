//! Documents that are moved: some in every state, with and without keys, and what must be said of them in the new store
//! as it was in the old one.

use std::time::Duration;

use bates_core::{
    ActionOutcome, AssignError, AssignRequest, Assignment, DocumentAction, DocumentContent, DocumentState,
    GapFilter, GapReason, MissingRange, MovedDocument, PositionRange, Promise, RangeSet, Reconciliation,
    ReleaseOutcome, ReleaseRequest, Store, Verdict,
};
use jiff::Timestamp;

use super::exercise::{definition, granted, lease, scope_id, series, want};
use super::outbox::{LONG, assignment, claimed, document, found, keyed, numbered, settled};

/// Three of them are more than a page may have.
const LARGE_BYTES: usize = 600_000;

/// A request that was numbered, and what it was answered the second time.
pub(super) type Answered = Vec<(AssignRequest, Assignment)>;

fn reservation(key: &str) -> AssignRequest {
    AssignRequest { content: DocumentContent::Reservation(LONG), ..keyed("a", key, 1) }
}

/// Documents in every state, in scope a. Answers with all requests that have keys.
pub(super) async fn fill_documents<S: Store>(store: &S) -> Answered {
    store.pin(definition("document"), None).await.expect("a pin");
    let mut asks = fill_removed(store).await;
    let refused = || "no\0, \"never\"".into();
    for (key, verdict) in [
        ("delivered", Verdict::Delivered),
        ("dead", Verdict::Dead(refused())),
        ("again", Verdict::RetryAfter(LONG, refused())),
        ("abandoned", Verdict::Dead(refused())),
    ] {
        asks.push(keyed("a", key, 1));
        let document_id = become_what(store, keyed("a", key, 1), verdict).await.document_id;
        if key == "abandoned" {
            store.apply_action(document_id, DocumentAction::Abandon).await.expect("a write");
        }
    }
    for (key, decision) in [
        ("reserved", None),
        ("confirmed", Some(DocumentAction::Confirm)),
        ("voided", Some(DocumentAction::Void)),
    ] {
        asks.push(reservation(key));
        let document_id = assignment(store, reservation(key)).await.document_id;
        if let Some(decision) = decision {
            store.apply_action(document_id, decision).await.expect("a write");
        }
    }
    let mut another = keyed("a", "reserved", 1);
    another.idempotency.as_mut().expect("it has one").caller = "another".into();
    asks.extend([keyed("a", "claimed", 1), another]);
    assignment(store, keyed("a", "claimed", 1)).await;
    assert_eq!(claimed(store, 1, LONG).await.len(), 1, "its claim is under way when the store is left");
    let mut answered = Vec::new();
    for ask in asks {
        assignment(store, ask.clone()).await;
        answered.push((ask.clone(), assignment(store, ask).await));
    }
    answered
}

/// A document that was delivered, and a reservation that was confirmed, of which only the keys are left.
async fn fill_removed<S: Store>(store: &S) -> Vec<AssignRequest> {
    let asks = vec![keyed("a", "removed", 1), reservation("saved and removed")];
    let saved = assignment(store, asks[1].clone()).await.document_id;
    store.apply_action(saved, DocumentAction::Confirm).await.expect("a write");
    become_what(store, asks[0].clone(), Verdict::Delivered).await;
    assert_eq!(store.prune_documents(Duration::ZERO, 10).await, Ok(2));
    asks
}

/// What has no key: large documents, and positions that nobody has.
pub(super) async fn fill_gaps<S: Store>(store: &S) {
    for _ in 0..4 {
        let body = format!("\"{}\"", "é".repeat(LARGE_BYTES / 2)).into();
        assignment(store, numbered("b", DocumentContent::Document(body))).await;
    }
    store.raise_floor(scope_id("c"), 1_500).await.expect("a floor");
    let held = granted(store, want(scope_id("c"), 10)).await;
    assignment(store, document("c")).await;
    let tail = ReleaseRequest {
        scope_id: scope_id("c"),
        range: lease(1_504, 1_510),
        version: held.version,
        lost: vec![],
    };
    assert_eq!(store.release(tail).await, Ok(ReleaseOutcome::Gap));
    granted(store, want(scope_id("d"), 10)).await;
    let missing = |range, reason| MissingRange { range, reason };
    let gaps = vec![
        (scope_id("a").scope, vec![missing(lease(1_004, 1_005), GapReason::OutboxDlq)]),
        (
            scope_id("c").scope,
            vec![
                missing(lease(1_001, 1_500), GapReason::FloorRaised),
                missing(lease(1_504, 1_510), GapReason::LeaseLost),
            ],
        ),
    ];
    store.replace_gaps(series("document"), gaps).await.expect("a write");
}

async fn become_what<S: Store>(store: &S, ask: AssignRequest, verdict: Verdict) -> Assignment {
    let given = assignment(store, ask).await;
    let claims = claimed(store, 1, LONG).await;
    assert!(claims.iter().all(|claim| claim.document_id == given.document_id), "it alone has had no try");
    assert_eq!(settled(store, &claims, verdict).await, 1);
    given
}

/// Everything that a store says of its documents, keys, gaps and accounts, read in small pages. Whoever holds
/// something is told as crashed: that is what a move makes of it. Times to the millisecond, which every store keeps.
pub(super) async fn told_of_documents<S: Store>(store: &S) -> Vec<String> {
    let mut told = Vec::new();
    let mut after = None;
    while let page = store.moved_documents(after, 3, LARGE_BYTES).await.expect("a page")
        && let Some(last) = page.last()
    {
        assert!(page.len() <= 3 && page.iter().rev().skip(1).map(bytes).sum::<usize>() < LARGE_BYTES);
        after = Some(last.document.id);
        told.extend(page.iter().map(shown));
    }
    let mut requests = Vec::new();
    while let page = store.moved_keys(requests.last().cloned(), 3).await.expect("a page")
        && !page.is_empty()
    {
        requests.extend(page);
    }
    let mut requests: Vec<String> = requests.iter().map(|request| format!("{request:?}")).collect();
    requests.sort_unstable();
    told.extend(requests);
    for gap in store.gaps(GapFilter::default(), None, 100).await.expect("a read") {
        told.push(format!("{} {:?} {}", gap.scope_id, gap.missing, gap.first_seen.as_millisecond()));
    }
    for (scope, account) in store.reconciliations(series("document"), None, 100).await.expect("a read") {
        told.push(format!("{scope} {}", balance(account)));
    }
    told
}

fn bytes(kept: &MovedDocument) -> usize {
    kept.body.as_ref().map_or(0, |body| body.len())
}

fn shown(MovedDocument { document, body }: &MovedDocument) -> String {
    let times = [Some(document.created), Some(document.updated), document.due];
    let times = times.map(|time| time.map(Timestamp::as_millisecond));
    let head = (&document.id, &document.scope_id, document.position, &document.number);
    // PostgreSQL keeps no NUL.
    let error = document.last_error.as_deref().map(|error| error.replace('\0', "\u{fffd}"));
    let body = body.as_deref().map(|body| (body.len(), body.chars().take(40).collect::<String>()));
    let outcome = (document.state, document.attempts, document.in_doubt);
    format!("{head:?} {outcome:?} {error:?} {times:?} {body:?}")
}

fn balance(mut account: Reconciliation) -> String {
    let crashed = account.held.drain(..).map(|range| MissingRange { range, reason: GapReason::CrashSkip });
    account.lost.extend(crashed);
    let ranges = |leases: Vec<PositionRange>| RangeSet::of(leases).iter().collect::<Vec<_>>();
    let missing = [Promise::Unique, Promise::Gapless].map(|promise| account.missing(promise, 1_001, None));
    format!("{} {missing:?} {:?} {:?}", account.next, ranges(account.issued), ranges(account.pending))
}

/// The same requests get the same answers, and what was under way goes on.
pub(super) async fn documents_go_on<S: Store>(store: &S, answered: Answered) {
    for (ask, expected) in answered {
        assert_eq!(store.assign(ask.clone()).await, Ok(expected), "{:?}", ask.idempotency);
        let mut other = ask;
        other.idempotency.as_mut().expect("it has one").digest = [2; 32];
        assert_eq!(store.assign(other).await, Err(AssignError::KeyReused));
    }
    let due = claimed(store, 100, LONG).await;
    let tries: Vec<(&str, u32, usize)> =
        due.iter().map(|claim| (&*claim.number, claim.attempt, claim.body.len())).collect();
    let expected = [("a-1011", 1, 14), ("b-1001", 1, 600_002), ("a-1010", 2, 14)];
    for one in expected {
        assert!(tries.contains(&one), "{one:?} is due, one after a claim that nobody settled: {tries:?}");
    }
    assert_eq!(due.len(), 7, "and one waits for its time: {tries:?}");
    assert_eq!(settled(store, &due, Verdict::Delivered).await, 7);
    let reserved = assignment(store, reservation("reserved")).await;
    assert_eq!(reserved.state, DocumentState::Reserved);
    assert!(matches!(
        store.apply_action(reserved.document_id, DocumentAction::Confirm).await,
        Ok(ActionOutcome::Done(_))
    ));
    store.prune_documents(Duration::ZERO, 100).await.expect("a write");
    for (ask, state) in [
        (reservation("reserved"), DocumentState::Confirmed),
        (reservation("saved and removed"), DocumentState::Confirmed),
        (keyed("a", "claimed", 1), DocumentState::Delivered),
    ] {
        let known = assignment(store, ask).await;
        assert_eq!((known.state, known.is_new), (state, false), "keys outlive their documents here too");
    }
    let fresh = assignment(store, document("a")).await;
    assert_eq!((&*fresh.number, fresh.is_new), ("a-1012", true), "its numbers go on");
    assert!(found(store, fresh.document_id).await.is_some());
}
