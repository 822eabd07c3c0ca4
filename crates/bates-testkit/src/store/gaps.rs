//! The part of the conformance suite about gaps: what every store must know about its positions.

use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    ClaimRequest, Definition, DocumentAction, DocumentContent, GapFilter, GapReason, GrantError,
    GrantPurpose, GrantRequest, MissingRange, PositionRange, Promise, PromiseChange, RangeSet,
    ReleaseOutcome, ReleaseRequest, ScopeId, ScopeKey, ScopePositions, Settlement, Store, Verdict,
};

use super::exercise::{DataSet, definition, grant, open_pinned, range, request, scope_id, series};
use super::outbox::assign_request;
use jiff::Timestamp;

const LONG: Duration = Duration::from_hours(1);

async fn account(store: &impl Store, scope: &str) -> ScopePositions {
    let accounts = store.scope_positions(series("document"), None, 100).await.expect("a read");
    let key = scope_id(scope).scope;
    accounts
        .into_iter()
        .find(|(found, _)| *found == key)
        .map(|(_, account)| account)
        .expect("the scope exists")
}

/// Ranges that processes hold, or held when they crashed. A shared store learns of a crash only after a timeout.
fn held(account: &ScopePositions) -> Vec<PositionRange> {
    let crashed =
        account.lost.iter().filter(|lost| lost.reason == GapReason::CrashSkip).map(|lost| lost.range);
    RangeSet::of(account.held.iter().copied().chain(crashed)).iter().collect()
}

pub async fn held_positions_are_known_and_handed_out_ones_are_not_missing<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, request(scope_id("a"), 10)).await;
    let first = account(&store, "a").await;
    assert_eq!((first.next, first.held), (1011, vec![range(1001, 1011)]));
    store.assign(assign_request("a", DocumentContent::Document("{}".into()))).await.expect("a number");
    grant(&store, GrantRequest { held_from: Some(1008), ..request(scope_id("a"), 10) }).await;
    let second = account(&store, "a").await;
    assert_eq!(second.issued, [range(1011, 1012)]);
    assert_eq!(held(&second), [range(1008, 1011), range(1012, 1022)], "positions below 1008 were handed out");
    assert_eq!(second.missing(Promise::Unique, 1001, None), []);
    drop(store);
    let store = data.open().await;
    assert_eq!(
        held(&account(&store, "a").await),
        [range(1008, 1011), range(1012, 1022)],
        "a crash changes nothing"
    );
    grant(&store, request(scope_id("a"), 10)).await;
    let both = held(&account(&store, "a").await);
    assert_eq!(both, [range(1008, 1011), range(1012, 1032)], "nor does a grant to another process");
}

/// A dispenser seals a scope before it releases its range; the scope may be granted again in between.
pub async fn a_late_release_keeps_ranges_granted_since<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let old = grant(&store, request(scope_id("a"), 10)).await;
    grant(&store, request(scope_id("a"), 10)).await;
    let release = ReleaseRequest {
        scope_id: scope_id("a"),
        range: range(1005, 1011),
        version: old.version,
        lost: vec![],
    };
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Gap));
    let account = account(&store, "a").await;
    assert_eq!(held(&account), [range(1011, 1021)]);
    let lost: Vec<PositionRange> = account.lost.iter().map(|lost| lost.range).collect();
    assert_eq!(lost, [range(1005, 1011)]);
}

/// A node may hold a range while its series becomes gapless, and release the end of it afterwards.
pub async fn a_range_released_after_the_promise_changed_counts_as_gapless<D: DataSet>(data: &D) {
    let store = data.open().await;
    let unique = Definition { promise: Some(Promise::Unique), ..definition("document") };
    store.pin(unique, None).await.expect("a first pin");
    let held = grant(&store, request(scope_id("a"), 10)).await;
    let changed = store
        .change_promise(
            series("document"),
            PromiseChange { from: Promise::Unique, to: Promise::Gapless },
            None,
            None,
        )
        .await;
    assert_eq!((changed, account(&store, "a").await.gapless_from), (Ok(true), 1011));
    let release = ReleaseRequest {
        scope_id: scope_id("a"),
        range: range(1003, 1011),
        version: held.version,
        lost: vec![],
    };
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Returned));
    grant(&store, GrantRequest { promise: Some(Promise::Gapless), ..request(scope_id("a"), 1) }).await;
    assert_eq!(account(&store, "a").await.gapless_from, 1003, "1003 is issued as a gapless number");
}

pub async fn a_range_handed_out_completely_is_no_longer_held<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let near_end = |count, held_from| GrantRequest { end: 1_021, held_from, ..request(scope_id("a"), count) };
    grant(&store, near_end(20, None)).await;
    let refused = Err(GrantError::Exhausted { left: 0, held_elsewhere: false });
    assert_eq!(store.grant(near_end(1, Some(1019))).await, refused);
    assert_eq!(held(&account(&store, "a").await), [range(1019, 1021)], "the unused end is still held");
    assert_eq!(store.grant(near_end(1, None)).await, refused);
    assert_eq!(held(&account(&store, "a").await), [], "nothing is held any more");
    drop(store);
    assert_eq!(account(&data.open().await, "a").await.lost, [], "a restart makes nothing uncertain");
}

pub async fn a_range_that_cannot_be_released_is_lost<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let held = grant(&store, request(scope_id("a"), 10)).await;
    let release = |from, lost| ReleaseRequest {
        scope_id: scope_id("a"),
        range: range(from, 1011),
        version: held.version,
        lost,
    };
    store.assign(assign_request("a", DocumentContent::Document("{}".into()))).await.expect("a number");
    assert_eq!(store.release(release(1006, vec![range(1003, 1004)])).await, Ok(ReleaseOutcome::Gap));
    let lost = account(&store, "a").await;
    assert_eq!(lost.held, []);
    let missing = |from, to| MissingRange { range: range(from, to), reason: GapReason::LeaseLost };
    assert_eq!(lost.missing(Promise::Unique, 1001, None), [missing(1003, 1004), missing(1006, 1011)]);
    let again = grant(&store, request(scope_id("b"), 10)).await;
    let all =
        ReleaseRequest { scope_id: scope_id("b"), range: again.range, version: again.version, lost: vec![] };
    assert_eq!(store.release(all).await, Ok(ReleaseOutcome::Returned));
    let returned = account(&store, "b").await;
    assert_eq!((returned.next, returned.held, returned.lost), (1001, vec![], vec![]));
}

pub async fn a_reconciliation_shows_the_state_of_every_document<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for _ in 0..3 {
        store.assign(assign_request("a", DocumentContent::Document("{}".into()))).await.expect("a number");
    }
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(
            store
                .assign(assign_request("a", DocumentContent::Reservation(LONG)))
                .await
                .expect("a number")
                .document_id,
        );
    }
    let claims = store
        .claim(ClaimRequest { series: series("document"), limit: 2, stop_at_bytes: 1 << 30, ttl: LONG })
        .await
        .expect("a claim");
    let settle = |at: usize, verdict| Settlement { document_id: claims[at].document_id, attempt: 1, verdict };
    let settled = vec![settle(0, Verdict::Delivered), settle(1, Verdict::Dead("down".into()))];
    store.settle_claims(settled).await.expect("a write");
    store.apply_action(tokens[0], DocumentAction::Void, None).await.expect("a write");
    store.apply_action(tokens[1], DocumentAction::Confirm, None).await.expect("a write");
    let found = account(&store, "a").await;
    let issued = RangeSet::of(found.issued.iter().copied());
    assert_eq!((found.next, issued), (1007, RangeSet::of([range(1001, 1007)])));
    assert_eq!(
        RangeSet::of(found.pending.iter().copied()),
        RangeSet::of([range(1003, 1004), range(1006, 1007)])
    );
    let missing = found.missing(Promise::Gapless, 1001, None);
    let expected = [(range(1002, 1003), GapReason::OutboxDlq), (range(1004, 1005), GapReason::Voided)];
    assert_eq!(missing, expected.map(|(range, reason)| MissingRange { range, reason }));
}

pub async fn a_document_that_a_sink_may_have_taken_is_uncertain<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for _ in 0..4 {
        store.assign(assign_request("a", DocumentContent::Document("{}".into()))).await.expect("a number");
    }
    let claim =
        ClaimRequest { series: series("document"), limit: 4, stop_at_bytes: 1 << 30, ttl: Duration::ZERO };
    let claims = store.claim(claim).await.expect("a claim");
    let settle = |at: usize, verdict| Settlement { document_id: claims[at].document_id, attempt: 1, verdict };
    let settled = vec![
        settle(0, Verdict::Dead("refused".into())),
        settle(1, Verdict::Unanswered(None, "no answer".into())),
        settle(2, Verdict::RetryAfter(LONG, "refused".into())),
    ];
    store.settle_claims(settled).await.expect("a write");
    for claimed in &claims[2..] {
        store.apply_action(claimed.document_id, DocumentAction::Abandon, None).await.expect("a write");
    }
    let missing = account(&store, "a").await.missing(Promise::Gapless, 1001, None);
    let reasons: Vec<GapReason> = missing.iter().map(|missing| missing.reason).collect();
    let unknown = GapReason::DeliveryUnknown;
    assert_eq!(reasons, [GapReason::OutboxDlq, unknown, GapReason::Abandoned, unknown]);
    assert!(unknown.is_uncertain());
}

pub async fn positions_skipped_by_a_floor_are_explained<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, GrantRequest { purpose: GrantPurpose::Issue, ..request(scope_id("a"), 5) }).await;
    store.raise_floor(scope_id("a"), 1_500, None).await.expect("a floor");
    grant(&store, GrantRequest { purpose: GrantPurpose::Issue, ..request(scope_id("a"), 5) }).await;
    let missing = account(&store, "a").await.missing(Promise::Gapless, 1001, None);
    assert_eq!(missing, [MissingRange { range: range(1006, 1500), reason: GapReason::FloorRaised }]);
    store.raise_floor(scope_id("new"), 1_500, None).await.expect("a floor");
    let missing = account(&store, "new").await.missing(Promise::Gapless, 1001, None);
    assert_eq!(
        missing,
        [MissingRange { range: range(1001, 1500), reason: GapReason::FloorRaised }],
        "also in a new scope"
    );
}

pub async fn reconciliations_are_listed_in_pages<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for scope in ["c", "a", "b", "e", "d"] {
        grant(&store, GrantRequest { purpose: GrantPurpose::Issue, ..request(scope_id(scope), 2) }).await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.scope_positions(series("document"), after, 2).await.expect("a page");
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        assert!(page.iter().all(|(_, account)| account.issued == [range(1001, 1003)]));
        seen.extend(page.into_iter().map(|(key, _)| key.to_string()));
    }
    assert_eq!(seen, ["scope=a", "scope=b", "scope=c", "scope=d", "scope=e"]);
}

pub async fn replaced_gaps_keep_the_time_they_were_first_seen<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let missing = |from, to, reason| MissingRange { range: range(from, to), reason };
    let key = |scope: &str| scope_id(scope).scope;
    let put = async |scopes: Vec<(ScopeKey, Vec<MissingRange>)>| {
        store.replace_gaps(series("document"), scopes).await.expect("a write");
    };
    let both = vec![missing(5, 8, GapReason::Voided), missing(9, 10, GapReason::CrashSkip)];
    put(vec![(key("a"), both), (key("b"), vec![missing(1, 2, GapReason::Burned)])]).await;
    let listed = async |filter: GapFilter, after: Option<(ScopeId, u64)>| {
        store.gaps(filter, after, 2).await.expect("a read")
    };
    let first = listed(GapFilter::default(), None).await;
    assert_eq!(first.iter().map(|gap| gap.missing.range.from()).collect::<Vec<_>>(), [5, 9]);
    let after = (first[1].scope_id.clone(), first[1].missing.range.from());
    let rest = listed(GapFilter::default(), Some(after)).await;
    assert_eq!(rest.iter().map(|gap| gap.scope_id.clone()).collect::<Vec<_>>(), [scope_id("b")]);
    // One gap is closed, one has grown, and one is new.
    put(vec![(key("a"), vec![missing(2, 3, GapReason::Voided), missing(5, 9, GapReason::Voided)])]).await;
    let of_a =
        GapFilter { series: Some(series("document")), scope: Some(key("a").into()), ..GapFilter::default() };
    let second = listed(of_a.clone(), None).await;
    let ranges: Vec<PositionRange> = second.iter().map(|gap| gap.missing.range).collect();
    assert_eq!(ranges, [range(2, 3), range(5, 9)]);
    assert_eq!(second[1].first_seen, first[0].first_seen, "the gap is the same one");
    put(vec![(key("a"), vec![])]).await;
    assert_eq!(listed(of_a, None).await, [], "a late document closes its gap");
}

pub async fn a_series_keeps_as_of_when_its_gaps_are<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    store.pin(definition("invoice"), None).await.expect("a first pin");
    assert_eq!(store.reconciled().await, Ok(Vec::new()), "it was never reconciled");
    let at = |millis| Timestamp::from_millisecond(millis).expect("a time");
    for millis in [1_790_000_000_123, 1_800_000_000_456] {
        store.set_reconciled(series("document"), at(millis)).await.expect("a write");
        assert_eq!(store.reconciled().await, Ok(vec![(series("document"), at(millis))]));
    }
    drop(store);
    let store = data.open().await;
    store.set_reconciled(series("invoice"), at(1)).await.expect("a write");
    let both = vec![(series("document"), at(1_800_000_000_456)), (series("invoice"), at(1))];
    assert_eq!(store.reconciled().await, Ok(both));
}
