//! Documents that are moved: some in every state, with and without keys, and what must be said of them in the new store
//! as it was in the old one.

use std::time::Duration;

use bates_core::{
    Account, Assign, AssignError, Assigned, Content, Decided, Decision, GapFilter, Kept, Lease, Missing,
    Promise, Ranges, Reason, State, Store, Surrendered, Tail, Verdict,
};
use jiff::Timestamp;

use super::exercise::{definition, granted, lease, place, series, want};
use super::outbox::{LONG, assigned, claimed, document, found, keyed, numbered, settled};

/// Three of them are more than a page may have.
const LARGE_BYTES: usize = 600_000;

/// A request that was numbered, and what it was answered the second time.
pub(super) type Answered = Vec<(Assign, Assigned)>;

fn reservation(key: &str) -> Assign {
    Assign { content: Content::Reservation(LONG), ..keyed("a", key, 1) }
}

/// Documents in every state, in scope a. Answers with all requests that have keys.
pub(super) async fn fill_documents<S: Store>(store: &S) -> Answered {
    store.pin(definition("document"), None).await.expect("a pin");
    let mut asks = fill_removed(store).await;
    let refused = || "no\0, \"never\"".into();
    for (key, verdict) in [
        ("delivered", Verdict::Delivered),
        ("dead", Verdict::Dead(refused())),
        ("again", Verdict::Again(LONG, refused())),
        ("abandoned", Verdict::Dead(refused())),
    ] {
        asks.push(keyed("a", key, 1));
        let event = become_what(store, keyed("a", key, 1), verdict).await.event;
        if key == "abandoned" {
            store.decide(event, Decision::Abandon).await.expect("a write");
        }
    }
    for (key, decision) in
        [("reserved", None), ("confirmed", Some(Decision::Confirm)), ("voided", Some(Decision::Void))]
    {
        asks.push(reservation(key));
        let event = assigned(store, reservation(key)).await.event;
        if let Some(decision) = decision {
            store.decide(event, decision).await.expect("a write");
        }
    }
    let mut another = keyed("a", "reserved", 1);
    another.idempotency.as_mut().expect("it has one").caller = "another".into();
    asks.extend([keyed("a", "claimed", 1), another]);
    assigned(store, keyed("a", "claimed", 1)).await;
    assert_eq!(claimed(store, 1, LONG).await.len(), 1, "its claim is under way when the store is left");
    let mut answered = Vec::new();
    for ask in asks {
        assigned(store, ask.clone()).await;
        answered.push((ask.clone(), assigned(store, ask).await));
    }
    answered
}

/// A document that was delivered, and a reservation that was confirmed, of which only the keys are left.
async fn fill_removed<S: Store>(store: &S) -> Vec<Assign> {
    let asks = vec![keyed("a", "removed", 1), reservation("saved and removed")];
    let saved = assigned(store, asks[1].clone()).await.event;
    store.decide(saved, Decision::Confirm).await.expect("a write");
    become_what(store, asks[0].clone(), Verdict::Delivered).await;
    assert_eq!(store.prune(Duration::ZERO, 10).await, Ok(2));
    asks
}

/// What has no key: large documents, and positions that nobody has.
pub(super) async fn fill_gaps<S: Store>(store: &S) {
    for _ in 0..4 {
        let body = format!("\"{}\"", "é".repeat(LARGE_BYTES / 2)).into();
        assigned(store, numbered("b", Content::Document(body))).await;
    }
    store.raise_floor(place("c"), 1_500).await.expect("a floor");
    let held = granted(store, want(place("c"), 10)).await;
    assigned(store, document("c")).await;
    let tail = Tail { place: place("c"), lease: lease(1_504, 1_510), version: held.version, lost: vec![] };
    assert_eq!(store.surrender(tail).await, Ok(Surrendered::Gap));
    granted(store, want(place("d"), 10)).await;
    let missing = |range, reason| Missing { range, reason };
    let gaps = vec![
        (place("a").scope, vec![missing(lease(1_004, 1_005), Reason::OutboxDlq)]),
        (
            place("c").scope,
            vec![
                missing(lease(1_001, 1_500), Reason::FloorRaised),
                missing(lease(1_504, 1_510), Reason::LeaseLost),
            ],
        ),
    ];
    store.put_gaps(series("document"), gaps).await.expect("a write");
}

async fn become_what<S: Store>(store: &S, ask: Assign, verdict: Verdict) -> Assigned {
    let given = assigned(store, ask).await;
    let claims = claimed(store, 1, LONG).await;
    assert!(claims.iter().all(|claim| claim.event == given.event), "it alone has had no try");
    assert_eq!(settled(store, &claims, verdict).await, 1);
    given
}

/// Everything that a store says of its documents, keys, gaps and accounts, read in small pages. Whoever holds
/// something is told as crashed: that is what a move makes of it. Times to the millisecond, which every store keeps.
pub(super) async fn told_of_documents<S: Store>(store: &S) -> Vec<String> {
    let mut told = Vec::new();
    let mut after = None;
    while let page = store.kept(after, 3, LARGE_BYTES).await.expect("a page")
        && let Some(last) = page.last()
    {
        assert!(page.len() <= 3 && page.iter().rev().skip(1).map(bytes).sum::<usize>() < LARGE_BYTES);
        after = Some(last.document.event);
        told.extend(page.iter().map(shown));
    }
    let mut requests = Vec::new();
    while let page = store.requests(requests.last().cloned(), 3).await.expect("a page")
        && !page.is_empty()
    {
        requests.extend(page);
    }
    let mut requests: Vec<String> = requests.iter().map(|request| format!("{request:?}")).collect();
    requests.sort_unstable();
    told.extend(requests);
    for gap in store.gaps(GapFilter::default(), None, 100).await.expect("a read") {
        told.push(format!("{} {:?} {}", gap.place, gap.missing, gap.seen.as_millisecond()));
    }
    for (scope, account) in store.accounts(series("document"), None, 100).await.expect("a read") {
        told.push(format!("{scope} {}", balance(account)));
    }
    told
}

fn bytes(kept: &Kept) -> usize {
    kept.body.as_ref().map_or(0, |body| body.len())
}

fn shown(Kept { document, body }: &Kept) -> String {
    let times = [Some(document.created), Some(document.updated), document.due];
    let times = times.map(|time| time.map(Timestamp::as_millisecond));
    let head = (&document.event, &document.place, document.position, &document.number);
    // PostgreSQL keeps no NUL.
    let error = document.last_error.as_deref().map(|error| error.replace('\0', "\u{fffd}"));
    let body = body.as_deref().map(|body| (body.len(), body.chars().take(40).collect::<String>()));
    let outcome = (document.state, document.tries, document.in_doubt);
    format!("{head:?} {outcome:?} {error:?} {times:?} {body:?}")
}

fn balance(mut account: Account) -> String {
    let crashed = account.held.drain(..).map(|range| Missing { range, reason: Reason::CrashSkip });
    account.lost.extend(crashed);
    let ranges = |leases: Vec<Lease>| Ranges::of(leases).iter().collect::<Vec<_>>();
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
    let reserved = assigned(store, reservation("reserved")).await;
    assert_eq!(reserved.state, State::Reserved);
    assert!(matches!(store.decide(reserved.event, Decision::Confirm).await, Ok(Decided::Done(_))));
    store.prune(Duration::ZERO, 100).await.expect("a write");
    for (ask, state) in [
        (reservation("reserved"), State::Confirmed),
        (reservation("saved and removed"), State::Confirmed),
        (keyed("a", "claimed", 1), State::Delivered),
    ] {
        let known = assigned(store, ask).await;
        assert_eq!((known.state, known.is_new), (state, false), "keys outlive their documents here too");
    }
    let fresh = assigned(store, document("a")).await;
    assert_eq!((&*fresh.number, fresh.is_new), ("a-1012", true), "its numbers go on");
    assert!(found(store, fresh.event).await.is_some());
}
