//! The conformance suite of leases of clients: what every store must know of what programs outside hold.

use bates_core::store::prelude::*;
use bates_core::{
    CLIENT_LEASE_TTL, ClientLease, ClientLeaseFilter, GapReason, GrantRequest, LeaseEnd, MissingRange,
    PositionRange, Promise, RangeSet, Reconciliation, ScopeId, Store,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::exercise::{DataSet, definition, granted, lease, scope_id, series, want};

async fn opened<D: DataSet>(data: &D) -> D::Store {
    let store = data.open().await;
    store.pin(definition("document"), None).await.expect("a first pin");
    store
}

fn held_by(scope: &str, ranges: &[(u64, u64)]) -> ClientLease {
    let now = Timestamp::from_millisecond(Timestamp::now().as_millisecond()).expect("a time");
    let ranges = ranges.iter().map(|(from, to)| lease(*from, *to)).collect();
    ClientLease { id: Uuid::now_v7(), scope_id: scope_id(scope), ranges, caller: "shop".into(), at: now }
}

/// Puts a lease of a client onto a store, in two ranges: for a move.
pub(super) async fn fill_client_leases<S: Store>(store: &S) -> ClientLease {
    store.pin(definition("leased"), None).await.expect("a first pin");
    let scope_id = ScopeId { series: series("leased"), ..scope_id("a") };
    granted(store, want(scope_id.clone(), 100)).await;
    let held = ClientLease { scope_id, ..held_by("a", &[(1011, 1021), (1031, 1041)]) };
    store.put_client_lease(held.clone(), vec![]).await.expect("a write");
    held
}

/// A lease has ended, and these positions are lost.
fn ended(held: &ClientLease, lost: &[PositionRange]) -> LeaseEnd {
    LeaseEnd::Ended { scope_id: held.scope_id.clone(), lost: RangeSet::of(lost.iter().copied()) }
}

/// After a move the client still holds its lease, and what it returns is accounted for.
pub(super) async fn client_leases_go_on<S: Store>(store: &S, held: &ClientLease) {
    assert_eq!(&all(store).await, std::slice::from_ref(held));
    let lost = async || -> Vec<MissingRange> {
        let accounts = store.reconciliations(series("leased"), None, 10).await.expect("a read");
        accounts.into_iter().flat_map(|(_, account)| account.missing(Promise::Unique, 1001, None)).collect()
    };
    let of_nodes = lost().await;
    let with_client = RangeSet::of(held.ranges.iter().copied());
    let missing = RangeSet::of(of_nodes.iter().map(|missing| missing.range));
    assert_eq!(missing.difference(&with_client), missing, "a client may still use what it holds");
    let returned = store.end_client_lease(held.id, vec![lease(1015, 1021)]).await;
    assert_eq!(returned, Ok(ended(held, &[lease(1015, 1021)])));
    let mut expected = of_nodes;
    expected.push(MissingRange { range: lease(1015, 1021), reason: GapReason::LeaseLost });
    expected.sort_unstable();
    assert_eq!(lost().await, expected, "the others were used");
}

async fn account(store: &impl Store) -> Reconciliation {
    let accounts = store.reconciliations(series("document"), None, 100).await.expect("a read");
    accounts
        .into_iter()
        .find(|(key, _)| *key == scope_id("a").scope)
        .map(|(_, account)| account)
        .expect("it is there")
}

async fn all(store: &impl Store) -> Vec<ClientLease> {
    store.client_leases(ClientLeaseFilter::default(), None, 100).await.expect("a read")
}

fn lost(from: u64, to: u64) -> MissingRange {
    MissingRange { range: lease(from, to), reason: GapReason::LeaseLost }
}

pub async fn what_a_client_has_is_missing_to_nobody_and_what_it_did_not_use_is_lost<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, GrantRequest { held_from: Some(1041), ..want(scope_id("a"), 40) }).await;
    let held = held_by("a", &[(1001, 1011), (1021, 1031)]);
    store.put_client_lease(held.clone(), vec![]).await.expect("a write");
    store.put_client_lease(held.clone(), vec![]).await.expect("as after an answer that was lost");
    assert_eq!(all(&store).await, std::slice::from_ref(&held), "once, as it was");
    let with_client = account(&store).await;
    assert_eq!(with_client.with_clients, held.ranges);
    assert_eq!(with_client.missing(Promise::Unique, 1001, None), []);
    let unused = vec![lease(1008, 1011), lease(1021, 1031)];
    assert_eq!(store.end_client_lease(held.id, unused.clone()).await, Ok(ended(&held, &unused)));
    let ended = account(&store).await;
    assert_eq!((ended.with_clients.len(), ended.next), (0, 1041), "nothing went back");
    assert_eq!(ended.missing(Promise::Unique, 1001, None), [lost(1008, 1011), lost(1021, 1031)]);
}

pub async fn what_was_used_to_the_last_leaves_nothing<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, GrantRequest { held_from: Some(1041), ..want(scope_id("a"), 40) }).await;
    let (first, second) = (held_by("a", &[(1001, 1011)]), held_by("a", &[(1011, 1021)]));
    store.put_client_lease(first.clone(), vec![]).await.expect("a write");
    let elsewhere = held_by("b", &[(1001, 1011)]);
    store.put_client_lease(elsewhere.clone(), vec![]).await.expect("a write");
    let used = vec![first.id, Uuid::now_v7(), elsewhere.id];
    store.put_client_lease(second.clone(), used).await.expect("also if one of them is not there");
    let mut left = vec![elsewhere, second];
    left.sort_by_key(|lease| lease.id);
    assert_eq!(all(&store).await, left, "what is held of another scope is not ended by mistake");
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), []);
}

pub async fn a_range_that_is_not_of_the_lease_is_refused_and_the_lease_stays_open<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, GrantRequest { held_from: Some(1061), ..want(scope_id("a"), 60) }).await;
    let held = held_by("a", &[(1011, 1021), (1021, 1031), (1041, 1051)]);
    let another = held_by("a", &[(1031, 1041)]);
    for lease in [&held, &another] {
        store.put_client_lease(lease.clone(), vec![]).await.expect("a write");
    }
    for (from, to) in
        [(1, 1013), (1050, 5000), (1010, 1011), (1051, 1052), (1030, 1042), (1035, 1036), (1, 9000)]
    {
        let returned = lease(from, to);
        let ended = store.end_client_lease(held.id, vec![lease(1012, 1013), returned]).await;
        let outside = LeaseEnd::Outside { returned, leased: held.ranges.clone() };
        assert_eq!(ended, Ok(outside), "{returned}");
    }
    let mut open = vec![held.clone(), another];
    open.sort_by_key(|lease| lease.id);
    assert_eq!(all(&store).await, open, "both are as they were");
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), [], "and nothing is lost");
    let unused = vec![lease(1015, 1026), lease(1041, 1043)];
    assert_eq!(
        store.end_client_lease(held.id, unused.clone()).await,
        Ok(ended(&held, &unused)),
        "ranges that touch are one"
    );
    let missing = account(&store).await.missing(Promise::Unique, 1001, None);
    assert_eq!(missing, [lost(1015, 1026), lost(1041, 1043)]);
}

pub async fn a_lease_ends_once<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, GrantRequest { held_from: Some(1041), ..want(scope_id("a"), 40) }).await;
    let held = held_by("a", &[(1001, 1011)]);
    assert_eq!(
        store.end_client_lease(held.id, held.ranges.clone()).await,
        Ok(LeaseEnd::Unknown),
        "it was not there yet"
    );
    store.put_client_lease(held.clone(), vec![]).await.expect("a write");
    assert_eq!(store.end_client_lease(held.id, vec![]).await, Ok(ended(&held, &[])));
    assert_eq!(store.end_client_lease(held.id, held.ranges).await, Ok(LeaseEnd::Unknown));
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), []);
}

pub async fn what_was_not_heard_of_for_too_long_is_uncertain_until_it_ends<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, GrantRequest { held_from: Some(1041), ..want(scope_id("a"), 40) }).await;
    let (mut old, new) = (held_by("a", &[(1001, 1011)]), held_by("a", &[(1011, 1021)]));
    old.at = old.at.checked_sub(CLIENT_LEASE_TTL).expect("a time");
    for lease in [&old, &new] {
        store.put_client_lease(lease.clone(), vec![]).await.expect("a write");
    }
    let uncertain = MissingRange { range: lease(1001, 1011), reason: GapReason::CrashSkip };
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), [uncertain]);
    let unused = vec![lease(1010, 1011)];
    assert_eq!(store.end_client_lease(old.id, unused.clone()).await, Ok(ended(&old, &unused)));
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), [lost(1010, 1011)]);
}

pub async fn a_crash_of_the_node_leaves_what_clients_have<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, want(scope_id("a"), 40)).await;
    let held = held_by("a", &[(1001, 1021)]);
    store.put_client_lease(held.clone(), vec![]).await.expect("a write");
    drop(store);
    let store = data.open().await;
    granted(&store, want(scope_id("a"), 10)).await;
    let after = account(&store).await;
    assert_eq!(after.with_clients, held.ranges);
    let missing = after.missing(Promise::Unique, 1001, None);
    let missing = RangeSet::of(missing.iter().map(|missing| missing.range));
    let client = RangeSet::of(held.ranges.iter().copied());
    assert_eq!(missing.difference(&client), missing, "nothing of what the client has is missing");
    let unused = vec![lease(1011, 1021)];
    assert_eq!(store.end_client_lease(held.id, unused.clone()).await, Ok(ended(&held, &unused)));
    let missing = account(&store).await.missing(Promise::Unique, 1001, None);
    assert!(missing.contains(&lost(1011, 1021)), "{missing:?}");
}

pub async fn leases_are_listed_in_pages<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let mut held: Vec<ClientLease> =
        (0..5).map(|at| held_by("a", &[(at * 10, at * 10 + 2), (at * 10 + 5, at * 10 + 9)])).collect();
    held.sort_by_key(|lease| lease.id);
    for lease in &held {
        store.put_client_lease(lease.clone(), vec![]).await.expect("a write");
    }
    let of = |name: &str| ClientLeaseFilter { series: Some(series(name)) };
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.client_leases(of("document"), after, 2).await.expect("a read");
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        seen.extend(page);
    }
    assert_eq!(seen, held);
    assert_eq!(store.client_leases(of("other"), None, 10).await, Ok(vec![]));
}
