//! The conformance suite of books: what every store must know of its positions.

use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    Account, Claim, Content, Decision, Definition, GapFilter, GrantError, Lease, Missing, Place, Promise,
    PromiseChange, Purpose, Ranges, Reason, ScopeKey, Settlement, Store, Surrendered, Tail, Verdict, Want,
};

use super::exercise::{DataSet, definition, granted, lease, place, series, want};
use super::outbox::numbered;

const LONG: Duration = Duration::from_hours(1);

async fn opened<D: DataSet>(data: &D) -> D::Store {
    let store = data.open().await;
    store.pin(definition("document"), None).await.expect("a first pin");
    store
}

async fn account(store: &impl Store, scope: &str) -> Account {
    let accounts = store.accounts(series("document"), None, 100).await.expect("a read");
    let key = place(scope).scope;
    accounts.into_iter().find(|(found, _)| *found == key).map(|(_, account)| account).expect("it is there")
}

/// What processes hold, or held when they crashed: which of the two it is, only time tells where there are nodes.
fn held(account: &Account) -> Vec<Lease> {
    let crashed = account.lost.iter().filter(|lost| lost.reason == Reason::CrashSkip).map(|lost| lost.range);
    Ranges::of(account.held.iter().copied().chain(crashed)).iter().collect()
}

pub async fn what_is_held_is_known_and_what_was_handed_out_is_not_missing<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, want(place("a"), 10)).await;
    let first = account(&store, "a").await;
    assert_eq!((first.next, first.held), (1011, vec![lease(1001, 1011)]));
    store.assign(numbered("a", Content::Document("{}".into()))).await.expect("a number");
    granted(&store, Want { held_from: Some(1008), ..want(place("a"), 10) }).await;
    let second = account(&store, "a").await;
    assert_eq!(second.issued, [lease(1011, 1012)]);
    assert_eq!(held(&second), [lease(1008, 1011), lease(1012, 1022)], "what lies below was handed out");
    assert_eq!(second.missing(Promise::Unique, 1001, None), []);
    drop(store);
    let store = data.open().await;
    assert_eq!(
        held(&account(&store, "a").await),
        [lease(1008, 1011), lease(1012, 1022)],
        "after a crash too"
    );
    granted(&store, want(place("a"), 10)).await;
    let kept = held(&account(&store, "a").await);
    assert_eq!(kept, [lease(1008, 1011), lease(1012, 1032)], "and when somebody else holds something");
}

/// Whoever seals a scope gives back later, and it may be asked for again meanwhile.
pub async fn a_late_give_back_leaves_what_was_granted_since<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let old = granted(&store, want(place("a"), 10)).await;
    granted(&store, want(place("a"), 10)).await;
    let tail = Tail { place: place("a"), lease: lease(1005, 1011), version: old.version, lost: vec![] };
    assert_eq!(store.surrender(tail).await, Ok(Surrendered::Gap));
    let account = account(&store, "a").await;
    assert_eq!(held(&account), [lease(1011, 1021)]);
    let lost: Vec<Lease> = account.lost.iter().map(|lost| lost.range).collect();
    assert_eq!(lost, [lease(1005, 1011)]);
}

/// A node may hold a range while its series becomes gapless, and gives the end of it back afterwards.
pub async fn a_tail_given_back_after_the_promise_changed_is_issued_without_gaps<D: DataSet>(data: &D) {
    let store = data.open().await;
    let unique = Definition { promise: Some(Promise::Unique), ..definition("document") };
    store.pin(unique, None).await.expect("a first pin");
    let held = granted(&store, want(place("a"), 10)).await;
    let changed = store
        .change_promise(
            series("document"),
            PromiseChange { from: Promise::Unique, to: Promise::Gapless },
            None,
        )
        .await;
    assert_eq!((changed, account(&store, "a").await.gapless_from), (Ok(true), 1011));
    let tail = Tail { place: place("a"), lease: lease(1003, 1011), version: held.version, lost: vec![] };
    assert_eq!(store.surrender(tail).await, Ok(Surrendered::Returned));
    granted(&store, Want { promise: Some(Promise::Gapless), ..want(place("a"), 1) }).await;
    assert_eq!(account(&store, "a").await.gapless_from, 1003, "1003 is issued as a gapless number");
}

pub async fn what_was_handed_out_to_the_last_is_held_by_nobody<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let near_end = |count, held_from| Want { end: 1_021, held_from, ..want(place("a"), count) };
    granted(&store, near_end(20, None)).await;
    let refused = Err(GrantError::Exhausted { left: 0, elsewhere: false });
    assert_eq!(store.grant(near_end(1, Some(1019))).await, refused);
    assert_eq!(held(&account(&store, "a").await), [lease(1019, 1021)], "what it still holds");
    assert_eq!(store.grant(near_end(1, None)).await, refused);
    assert_eq!(held(&account(&store, "a").await), [], "and then nothing");
    drop(store);
    assert_eq!(account(&data.open().await, "a").await.lost, [], "nor is anything uncertain after a restart");
}

pub async fn what_cannot_be_given_back_is_lost<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let held = granted(&store, want(place("a"), 10)).await;
    let tail = |from, lost| Tail { place: place("a"), lease: lease(from, 1011), version: held.version, lost };
    store.assign(numbered("a", Content::Document("{}".into()))).await.expect("a number");
    assert_eq!(store.surrender(tail(1006, vec![lease(1003, 1004)])).await, Ok(Surrendered::Gap));
    let lost = account(&store, "a").await;
    assert_eq!(lost.held, []);
    let missing = |from, to| Missing { range: lease(from, to), reason: Reason::LeaseLost };
    assert_eq!(lost.missing(Promise::Unique, 1001, None), [missing(1003, 1004), missing(1006, 1011)]);
    let again = granted(&store, want(place("b"), 10)).await;
    let all = Tail { place: place("b"), lease: again.lease, version: again.version, lost: vec![] };
    assert_eq!(store.surrender(all).await, Ok(Surrendered::Returned));
    let returned = account(&store, "b").await;
    assert_eq!((returned.next, returned.held, returned.lost), (1001, vec![], vec![]));
}

pub async fn what_became_of_documents_is_in_the_account<D: DataSet>(data: &D) {
    let store = opened(data).await;
    for _ in 0..3 {
        store.assign(numbered("a", Content::Document("{}".into()))).await.expect("a number");
    }
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(store.assign(numbered("a", Content::Reservation(LONG))).await.expect("a number").event);
    }
    let claims = store
        .claim(Claim { series: series("document"), limit: 2, bytes: 1 << 30, lasts: LONG })
        .await
        .expect("a claim");
    let settle = |at: usize, verdict| Settlement { event: claims[at].event, attempt: 1, verdict };
    let settled = vec![settle(0, Verdict::Delivered), settle(1, Verdict::Dead("down".into()))];
    store.settle(settled).await.expect("a write");
    store.decide(tokens[0], Decision::Void).await.expect("a write");
    store.decide(tokens[1], Decision::Confirm).await.expect("a write");
    let found = account(&store, "a").await;
    let issued = Ranges::of(found.issued.iter().copied());
    assert_eq!((found.next, issued), (1007, Ranges::of([lease(1001, 1007)])));
    assert_eq!(Ranges::of(found.pending.iter().copied()), Ranges::of([lease(1003, 1004), lease(1006, 1007)]));
    let missing = found.missing(Promise::Gapless, 1001, None);
    let expected = [(lease(1002, 1003), Reason::OutboxDlq), (lease(1004, 1005), Reason::Voided)];
    assert_eq!(missing, expected.map(|(range, reason)| Missing { range, reason }));
}

pub async fn what_a_sink_may_have_taken_is_uncertain<D: DataSet>(data: &D) {
    let store = opened(data).await;
    for _ in 0..4 {
        store.assign(numbered("a", Content::Document("{}".into()))).await.expect("a number");
    }
    let claim = Claim { series: series("document"), limit: 4, bytes: 1 << 30, lasts: Duration::ZERO };
    let claims = store.claim(claim).await.expect("a claim");
    let settle = |at: usize, verdict| Settlement { event: claims[at].event, attempt: 1, verdict };
    let settled = vec![
        settle(0, Verdict::Dead("refused".into())),
        settle(1, Verdict::Unanswered(None, "no answer".into())),
        settle(2, Verdict::Again(LONG, "refused".into())),
    ];
    store.settle(settled).await.expect("a write");
    for claimed in &claims[2..] {
        store.decide(claimed.event, Decision::Abandon).await.expect("a write");
    }
    let missing = account(&store, "a").await.missing(Promise::Gapless, 1001, None);
    let reasons: Vec<Reason> = missing.iter().map(|missing| missing.reason).collect();
    let unknown = Reason::DeliveryUnknown;
    assert_eq!(reasons, [Reason::OutboxDlq, unknown, Reason::Abandoned, unknown]);
    assert!(unknown.is_uncertain());
}

pub async fn what_a_floor_passed_over_is_explained<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, Want { purpose: Purpose::Issue, ..want(place("a"), 5) }).await;
    store.raise_floor(place("a"), 1_500).await.expect("a floor");
    granted(&store, Want { purpose: Purpose::Issue, ..want(place("a"), 5) }).await;
    let missing = account(&store, "a").await.missing(Promise::Gapless, 1001, None);
    assert_eq!(missing, [Missing { range: lease(1006, 1500), reason: Reason::FloorRaised }]);
    store.raise_floor(place("new"), 1_500).await.expect("a floor");
    let missing = account(&store, "new").await.missing(Promise::Gapless, 1001, None);
    assert_eq!(
        missing,
        [Missing { range: lease(1001, 1500), reason: Reason::FloorRaised }],
        "also where nothing was issued yet: nobody has lost it"
    );
}

pub async fn accounts_are_listed_in_pages<D: DataSet>(data: &D) {
    let store = opened(data).await;
    for scope in ["c", "a", "b", "e", "d"] {
        granted(&store, Want { purpose: Purpose::Issue, ..want(place(scope), 2) }).await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.accounts(series("document"), after, 2).await.expect("a page");
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        assert!(page.iter().all(|(_, account)| account.issued == [lease(1001, 1003)]));
        seen.extend(page.into_iter().map(|(key, _)| key.to_string()));
    }
    assert_eq!(seen, ["scope=a", "scope=b", "scope=c", "scope=d", "scope=e"]);
}

pub async fn gaps_are_replaced_and_keep_the_time_when_they_were_first_seen<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let missing = |from, to, reason| Missing { range: lease(from, to), reason };
    let key = |scope: &str| place(scope).scope;
    let put = async |scopes: Vec<(ScopeKey, Vec<Missing>)>| {
        store.put_gaps(series("document"), scopes).await.expect("a write");
    };
    let both = vec![missing(5, 8, Reason::Voided), missing(9, 10, Reason::CrashSkip)];
    put(vec![(key("a"), both), (key("b"), vec![missing(1, 2, Reason::Burned)])]).await;
    let listed =
        async |of: GapFilter, after: Option<(Place, u64)>| store.gaps(of, after, 2).await.expect("a read");
    let first = listed(GapFilter::default(), None).await;
    assert_eq!(first.iter().map(|gap| gap.missing.range.from()).collect::<Vec<_>>(), [5, 9]);
    let after = (first[1].place.clone(), first[1].missing.range.from());
    let rest = listed(GapFilter::default(), Some(after)).await;
    assert_eq!(rest.iter().map(|gap| gap.place.clone()).collect::<Vec<_>>(), [place("b")]);
    // One is closed, one is longer now, and one is new.
    put(vec![(key("a"), vec![missing(2, 3, Reason::Voided), missing(5, 9, Reason::Voided)])]).await;
    let of_a = GapFilter { series: Some(series("document")), scope: Some(key("a")) };
    let second = listed(of_a.clone(), None).await;
    let ranges: Vec<Lease> = second.iter().map(|gap| gap.missing.range).collect();
    assert_eq!(ranges, [lease(2, 3), lease(5, 9)]);
    assert_eq!(second[1].seen, first[0].seen, "it was there before");
    put(vec![(key("a"), vec![])]).await;
    assert_eq!(listed(of_a, None).await, [], "a late document closes its gap");
}
