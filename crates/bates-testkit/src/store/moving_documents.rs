//! Documents in a move between stores: in every state, with and without keys. The new store must answer for them as
//! the old one did.

use std::time::Duration;

use bates_core::{
    ActionOutcome, AssignError, AssignRequest, Assignment, DocumentAction, DocumentContent, DocumentState,
    GapFilter, GapReason, MissingRange, MovedDocument, PositionRange, Promise, PruneGroup, RangeSet,
    ReleaseOutcome, ReleaseRequest, ScopePositions, Store, Verdict,
};
use jiff::Timestamp;

use super::exercise::{definition, grant, range, request, scope_id, series};
use super::outbox::{LONG, assign, assign_request, claim, document, find_document, keyed_document, settle};

/// Three documents of this size exceed one page.
const LARGE_BYTES: usize = 600_000;

/// Requests with keys, and the answer to the second request with each.
pub(super) type Answered = Vec<(AssignRequest, Assignment)>;

fn reservation(key: &str) -> AssignRequest {
    AssignRequest { content: DocumentContent::Reservation(LONG), ..keyed_document("a", key, 1) }
}

/// Fills scope a with documents in every state. Returns all requests that have keys.
pub(super) async fn fill_documents<S: Store>(store: &S) -> Answered {
    store.pin(definition("document"), None).await.expect("a pin");
    let mut requests = fill_pruned(store).await;
    let refused = || "no\0, \"never\"".into();
    for (key, verdict) in [
        ("delivered", Verdict::Delivered),
        ("dead", Verdict::Dead(refused())),
        ("again", Verdict::RetryAfter(LONG, refused())),
        ("abandoned", Verdict::Dead(refused())),
    ] {
        requests.push(keyed_document("a", key, 1));
        let document_id = assign_and_settle(store, keyed_document("a", key, 1), verdict).await.document_id;
        if key == "abandoned" {
            store.apply_action(document_id, DocumentAction::Abandon, None).await.expect("a write");
        }
    }
    for (key, decision) in [
        ("reserved", None),
        ("confirmed", Some(DocumentAction::Confirm)),
        ("voided", Some(DocumentAction::Void)),
    ] {
        requests.push(reservation(key));
        let document_id = assign(store, reservation(key)).await.document_id;
        if let Some(decision) = decision {
            store.apply_action(document_id, decision, None).await.expect("a write");
        }
    }
    let mut another = keyed_document("a", "reserved", 1);
    another.idempotency.as_mut().expect("a key").caller = "another".into();
    requests.extend([keyed_document("a", "claimed", 1), another]);
    assign(store, keyed_document("a", "claimed", 1)).await;
    assert_eq!(claim(store, 1, LONG).await.len(), 1, "its claim is still open when the store is left");
    let mut answered = Vec::new();
    for request in requests {
        assign(store, request.clone()).await;
        answered.push((request.clone(), assign(store, request).await));
    }
    answered
}

/// Documents and reservations that were pruned: only their keys are left, and gaps.
async fn fill_pruned<S: Store>(store: &S) -> Vec<AssignRequest> {
    let mut requests = vec![keyed_document("a", "pruned", 1), reservation("confirmed and pruned")];
    let confirmed = assign(store, requests[1].clone()).await.document_id;
    store.apply_action(confirmed, DocumentAction::Confirm, None).await.expect("a write");
    assign_and_settle(store, requests[0].clone(), Verdict::Delivered).await;
    assert_eq!(store.prune_documents(PruneGroup::Delivered, Duration::ZERO, 10).await, Ok(2));
    let voided = assign(store, reservation("voided and pruned")).await.document_id;
    store.apply_action(voided, DocumentAction::Void, None).await.expect("a write");
    assign_and_settle(store, keyed_document("a", "dead and pruned", 1), Verdict::Dead("down".into())).await;
    assert_eq!(store.prune_documents(PruneGroup::Undelivered, Duration::ZERO, 10).await, Ok(2));
    requests.extend([reservation("voided and pruned"), keyed_document("a", "dead and pruned", 1)]);
    requests
}

/// Large documents without keys, and positions that are missing.
pub(super) async fn fill_gaps<S: Store>(store: &S) {
    for _ in 0..4 {
        let body = format!("\"{}\"", "é".repeat(LARGE_BYTES / 2)).into();
        assign(store, assign_request("b", DocumentContent::Document(body))).await;
    }
    store.raise_floor(scope_id("c"), 1_500, None).await.expect("a floor");
    let held = grant(store, request(scope_id("c"), 10)).await;
    assign(store, document("c")).await;
    let release = ReleaseRequest {
        scope_id: scope_id("c"),
        range: range(1_504, 1_510),
        version: held.version,
        lost: vec![],
    };
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Gap));
    grant(store, request(scope_id("d"), 10)).await;
    let missing = |range, reason| MissingRange { range, reason };
    let gaps = vec![
        (scope_id("a").scope, vec![missing(range(1_006, 1_007), GapReason::OutboxDlq)]),
        (
            scope_id("c").scope,
            vec![
                missing(range(1_001, 1_500), GapReason::FloorRaised),
                missing(range(1_504, 1_510), GapReason::LeaseLost),
            ],
        ),
    ];
    store.replace_gaps(series("document"), gaps).await.expect("a write");
    let at = Timestamp::from_millisecond(1_800_000_000_123).expect("a time");
    store.set_reconciled(series("document"), at).await.expect("a write");
}

async fn assign_and_settle<S: Store>(store: &S, request: AssignRequest, verdict: Verdict) -> Assignment {
    let assignment = assign(store, request).await;
    let claims = claim(store, 1, LONG).await;
    assert!(
        claims.iter().all(|claim| claim.document_id == assignment.document_id),
        "no other document is due without an attempt"
    );
    assert_eq!(settle(store, &claims, verdict).await, 1);
    assignment
}

/// The documents, keys, gaps and reconciliations of a store as text, read in small pages. Held ranges count as
/// crashed, because a move makes them so. Times are in milliseconds, the precision that every store keeps.
pub(super) async fn list_documents<S: Store>(store: &S) -> Vec<String> {
    let mut listed = Vec::new();
    let mut after = None;
    while let page = store.moved_documents(after, 3, LARGE_BYTES).await.expect("a page")
        && let Some(last) = page.last()
    {
        assert!(page.len() <= 3 && page.iter().rev().skip(1).map(bytes).sum::<usize>() < LARGE_BYTES);
        after = Some(last.document.id);
        listed.extend(page.iter().map(document_text));
    }
    let mut keys = Vec::new();
    while let page = store.moved_keys(keys.last().cloned(), 3).await.expect("a page")
        && !page.is_empty()
    {
        keys.extend(page);
    }
    let mut keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
    keys.sort_unstable();
    listed.extend(keys);
    for gap in store.gaps(GapFilter::default(), None, 100).await.expect("a read") {
        listed.push(format!("{} {:?} {}", gap.scope_id, gap.missing, gap.first_seen.as_millisecond()));
    }
    listed.push(format!("{:?}", store.reconciled().await.expect("a read")));
    for (scope, account) in store.scope_positions(series("document"), None, 100).await.expect("a read") {
        listed.push(format!("{scope} {}", reconciliation_text(account)));
    }
    listed
}

fn bytes(moved: &MovedDocument) -> usize {
    moved.body.as_ref().map_or(0, |body| body.len())
}

fn document_text(MovedDocument { document, body }: &MovedDocument) -> String {
    let times = [Some(document.created), Some(document.updated), document.due];
    let times = times.map(|time| time.map(Timestamp::as_millisecond));
    let head = (&document.id, &document.scope_id, document.position, &document.number);
    // PostgreSQL cannot store NUL.
    let error = document.last_error.as_deref().map(|error| error.replace('\0', "\u{fffd}"));
    let body = body.as_deref().map(|body| (body.len(), body.chars().take(40).collect::<String>()));
    let outcome = (document.state, document.attempts, document.in_doubt);
    format!("{head:?} {outcome:?} {error:?} {times:?} {body:?}")
}

fn reconciliation_text(mut account: ScopePositions) -> String {
    let crashed = account.held.drain(..).map(|range| MissingRange { range, reason: GapReason::CrashSkip });
    account.lost.extend(crashed);
    let ranges = |ranges: Vec<PositionRange>| RangeSet::of(ranges).iter().collect::<Vec<_>>();
    let missing = [Promise::Unique, Promise::Gapless].map(|promise| account.missing(promise, 1_001, None));
    format!("{} {missing:?} {:?} {:?}", account.next, ranges(account.issued), ranges(account.pending))
}

/// Repeated requests get the same answers, and deliveries and reservations continue.
pub(super) async fn check_documents<S: Store>(store: &S, answered: Answered) {
    for (request, expected) in answered {
        assert_eq!(store.assign(request.clone()).await, Ok(expected), "{:?}", request.idempotency);
        let mut other = request;
        other.idempotency.as_mut().expect("a key").digest = [2; 32];
        assert_eq!(store.assign(other).await, Err(AssignError::KeyReused));
    }
    let due = claim(store, 100, LONG).await;
    let attempts: Vec<(&str, u32, usize)> =
        due.iter().map(|claim| (&*claim.number, claim.attempt, claim.body.len())).collect();
    let expected = [("a-1013", 1, 14), ("b-1001", 1, 600_002), ("a-1012", 2, 14)];
    for one in expected {
        assert!(attempts.contains(&one), "{one:?} is due, the last after an unsettled claim: {attempts:?}");
    }
    assert_eq!(due.len(), 7, "one more is not due yet: {attempts:?}");
    assert_eq!(settle(store, &due, Verdict::Delivered).await, 7);
    let reserved = assign(store, reservation("reserved")).await;
    assert_eq!(reserved.state, DocumentState::Reserved);
    assert!(matches!(
        store.apply_action(reserved.document_id, DocumentAction::Confirm, None).await,
        Ok(ActionOutcome::Done(_))
    ));
    store.prune_documents(PruneGroup::Delivered, Duration::ZERO, 100).await.expect("a write");
    for (request, state) in [
        (reservation("reserved"), DocumentState::Confirmed),
        (reservation("confirmed and pruned"), DocumentState::Confirmed),
        (reservation("voided and pruned"), DocumentState::Voided),
        (keyed_document("a", "dead and pruned", 1), DocumentState::Dead),
        (keyed_document("a", "claimed", 1), DocumentState::Delivered),
    ] {
        let known = assign(store, request).await;
        assert_eq!((known.state, known.is_new), (state, false), "keys outlive their documents");
    }
    let fresh = assign(store, document("a")).await;
    assert_eq!((&*fresh.number, fresh.is_new), ("a-1014", true), "numbering continues");
    assert!(find_document(store, fresh.document_id).await.is_some());
}
