//! The part of the conformance suite about client leases: ranges that programs outside Bates hold.

use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    CLIENT_LEASE_TTL, ClientLease, ClientLeaseFilter, GapReason, GrantRequest, LeaseEnd, LeaseOwner,
    MissingRange, PositionRange, Promise, RangeSet, ScopeId, ScopePositions, Store, UsedLeases,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::exercise::{DataSet, definition, grant, open_pinned, range, request, scope_id, series};

pub(super) fn client_lease(scope: &str, ranges: &[(u64, u64)]) -> ClientLease {
    let now = Timestamp::from_millisecond(Timestamp::now().as_millisecond()).expect("a time");
    let ranges = ranges.iter().map(|(from, to)| range(*from, *to)).collect();
    ClientLease { id: Uuid::now_v7(), scope_id: scope_id(scope), ranges, caller: "shop".into(), at: now }
}

/// Stores a client lease of two ranges, for a move.
pub(super) async fn fill_client_leases<S: Store>(store: &S) -> ClientLease {
    store.pin(definition("leased"), None).await.expect("a first pin");
    let scope_id = ScopeId { series: series("leased"), ..scope_id("a") };
    grant(store, request(scope_id.clone(), 100)).await;
    let held = ClientLease { scope_id, ..client_lease("a", &[(1011, 1021), (1031, 1041)]) };
    store.put_client_lease(held.clone(), UsedLeases::default()).await.expect("a write");
    held
}

/// The outcome of ending a lease whose unused positions are `lost`.
fn lease_end(held: &ClientLease, lost: &[PositionRange]) -> LeaseEnd {
    LeaseEnd::Ended { scope_id: held.scope_id.clone(), lost: RangeSet::of(lost.iter().copied()) }
}

/// After a move the client still holds its lease, and positions that it returns are lost.
pub(super) async fn check_client_leases<S: Store>(store: &S, held: &ClientLease) {
    assert_eq!(&all(store).await, std::slice::from_ref(held));
    let lost = async || -> Vec<MissingRange> {
        let accounts = store.scope_positions(series("leased"), None, 10).await.expect("a read");
        accounts.into_iter().flat_map(|(_, account)| account.missing(Promise::Unique, 1001, None)).collect()
    };
    let of_nodes = lost().await;
    let with_client = RangeSet::of(held.ranges.iter().copied());
    let missing = RangeSet::of(of_nodes.iter().map(|missing| missing.range));
    assert_eq!(missing.difference(&with_client), missing, "the positions of the client are not missing");
    let returned = store.end_client_lease(held.id, vec![range(1015, 1021)], LeaseOwner::Any).await;
    assert_eq!(returned, Ok(lease_end(held, &[range(1015, 1021)])));
    let mut expected = of_nodes;
    expected.push(MissingRange { range: range(1015, 1021), reason: GapReason::LeaseLost });
    expected.sort_unstable();
    assert_eq!(lost().await, expected, "only the returned positions are lost");
}

async fn account(store: &impl Store) -> ScopePositions {
    let accounts = store.scope_positions(series("document"), None, 100).await.expect("a read");
    accounts
        .into_iter()
        .find(|(key, _)| *key == scope_id("a").scope)
        .map(|(_, account)| account)
        .expect("the scope exists")
}

async fn all(store: &impl Store) -> Vec<ClientLease> {
    store.client_leases(ClientLeaseFilter::default(), None, 100).await.expect("a read")
}

fn lost(from: u64, to: u64) -> MissingRange {
    MissingRange { range: range(from, to), reason: GapReason::LeaseLost }
}

pub async fn leased_positions_are_not_missing_and_returned_ones_are_lost<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, GrantRequest { held_from: Some(1041), ..request(scope_id("a"), 40) }).await;
    let held = client_lease("a", &[(1001, 1011), (1021, 1031)]);
    store.put_client_lease(held.clone(), UsedLeases::default()).await.expect("a write");
    store.put_client_lease(held.clone(), UsedLeases::default()).await.expect("a repeated write");
    assert_eq!(all(&store).await, std::slice::from_ref(&held), "stored once");
    let with_client = account(&store).await;
    assert_eq!(with_client.with_clients, held.ranges);
    assert_eq!(with_client.missing(Promise::Unique, 1001, None), []);
    let unused = vec![range(1008, 1011), range(1021, 1031)];
    assert_eq!(
        store.end_client_lease(held.id, unused.clone(), LeaseOwner::Any).await,
        Ok(lease_end(&held, &unused))
    );
    let ended = account(&store).await;
    assert_eq!((ended.with_clients.len(), ended.next), (0, 1041), "the cursor does not fall");
    assert_eq!(ended.missing(Promise::Unique, 1001, None), [lost(1008, 1011), lost(1021, 1031)]);
}

pub async fn a_lease_used_completely_leaves_nothing_missing<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, GrantRequest { held_from: Some(1041), ..request(scope_id("a"), 40) }).await;
    let (first, second) = (client_lease("a", &[(1001, 1011)]), client_lease("a", &[(1011, 1021)]));
    store.put_client_lease(first.clone(), UsedLeases::default()).await.expect("a write");
    let elsewhere = client_lease("b", &[(1001, 1011)]);
    store.put_client_lease(elsewhere.clone(), UsedLeases::default()).await.expect("a write");
    let used = vec![first.id, Uuid::now_v7(), elsewhere.id];
    store
        .put_client_lease(second.clone(), UsedLeases { ids: used, owner: LeaseOwner::Any })
        .await
        .expect("unknown leases are ignored");
    let mut left = vec![elsewhere, second];
    left.sort_by_key(|lease| lease.id);
    assert_eq!(all(&store).await, left, "a lease of another scope is not ended");
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), []);
}

pub async fn a_lease_is_ended_only_by_its_owner<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, GrantRequest { held_from: Some(1041), ..request(scope_id("a"), 40) }).await;
    let (held, second) = (client_lease("a", &[(1001, 1011)]), client_lease("a", &[(1011, 1021)]));
    store.put_client_lease(held.clone(), UsedLeases::default()).await.expect("a write");
    let other = || LeaseOwner::Caller("another caller".into());
    let ended = store.end_client_lease(held.id, held.ranges.clone(), other()).await;
    assert_eq!(ended, Ok(LeaseEnd::Unknown), "to another caller, the lease does not exist");
    let used = |owner| UsedLeases { ids: vec![held.id], owner };
    store.put_client_lease(second.clone(), used(other())).await.expect("a write");
    assert_eq!(all(&store).await.len(), 2, "another caller cannot report it as used");
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), [], "and nothing is lost");
    let own = LeaseOwner::Caller(held.caller.clone());
    let third = client_lease("a", &[(1021, 1031)]);
    store.put_client_lease(third, used(own.clone())).await.expect("a write");
    assert_eq!(all(&store).await.len(), 2, "its owner can");
    let ended = store.end_client_lease(second.id, second.ranges.clone(), own).await;
    assert_eq!(ended, Ok(lease_end(&second, &second.ranges)));
}

pub async fn a_range_outside_the_lease_is_refused_and_the_lease_stays_open<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, GrantRequest { held_from: Some(1061), ..request(scope_id("a"), 60) }).await;
    let held = client_lease("a", &[(1011, 1021), (1021, 1031), (1041, 1051)]);
    let another = client_lease("a", &[(1031, 1041)]);
    for lease in [&held, &another] {
        store.put_client_lease(lease.clone(), UsedLeases::default()).await.expect("a write");
    }
    for (from, to) in
        [(1, 1013), (1050, 5000), (1010, 1011), (1051, 1052), (1030, 1042), (1035, 1036), (1, 9000)]
    {
        let returned = range(from, to);
        let ended = store.end_client_lease(held.id, vec![range(1012, 1013), returned], LeaseOwner::Any).await;
        let outside = LeaseEnd::Outside { returned, leased: held.ranges.clone() };
        assert_eq!(ended, Ok(outside), "{returned}");
    }
    let mut open = vec![held.clone(), another];
    open.sort_by_key(|lease| lease.id);
    assert_eq!(all(&store).await, open, "both are unchanged");
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), [], "and nothing is lost");
    let unused = vec![range(1015, 1026), range(1041, 1043)];
    assert_eq!(
        store.end_client_lease(held.id, unused.clone(), LeaseOwner::Any).await,
        Ok(lease_end(&held, &unused)),
        "adjacent ranges count as one"
    );
    let missing = account(&store).await.missing(Promise::Unique, 1001, None);
    assert_eq!(missing, [lost(1015, 1026), lost(1041, 1043)]);
}

pub async fn a_lease_ends_once<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, GrantRequest { held_from: Some(1041), ..request(scope_id("a"), 40) }).await;
    let held = client_lease("a", &[(1001, 1011)]);
    assert_eq!(
        store.end_client_lease(held.id, held.ranges.clone(), LeaseOwner::Any).await,
        Ok(LeaseEnd::Unknown),
        "the lease is not stored yet"
    );
    store.put_client_lease(held.clone(), UsedLeases::default()).await.expect("a write");
    assert_eq!(store.end_client_lease(held.id, vec![], LeaseOwner::Any).await, Ok(lease_end(&held, &[])));
    assert_eq!(store.end_client_lease(held.id, held.ranges, LeaseOwner::Any).await, Ok(LeaseEnd::Unknown));
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), []);
}

pub async fn a_silent_lease_is_uncertain_until_it_ends<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, GrantRequest { held_from: Some(1041), ..request(scope_id("a"), 40) }).await;
    let (mut old, new) = (client_lease("a", &[(1001, 1011)]), client_lease("a", &[(1011, 1021)]));
    // A second more, because the store has its own clock.
    old.at = old.at.checked_sub(CLIENT_LEASE_TTL + Duration::from_secs(1)).expect("a time");
    for lease in [&old, &new] {
        store.put_client_lease(lease.clone(), UsedLeases::default()).await.expect("a write");
    }
    let uncertain = MissingRange { range: range(1001, 1011), reason: GapReason::CrashSkip };
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), [uncertain]);
    let unused = vec![range(1010, 1011)];
    assert_eq!(
        store.end_client_lease(old.id, unused.clone(), LeaseOwner::Any).await,
        Ok(lease_end(&old, &unused))
    );
    assert_eq!(account(&store).await.missing(Promise::Unique, 1001, None), [lost(1010, 1011)]);
}

pub async fn client_leases_survive_a_crash_of_the_node<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    grant(&store, request(scope_id("a"), 40)).await;
    let held = client_lease("a", &[(1001, 1021)]);
    store.put_client_lease(held.clone(), UsedLeases::default()).await.expect("a write");
    drop(store);
    let store = data.open().await;
    grant(&store, request(scope_id("a"), 10)).await;
    let after = account(&store).await;
    assert_eq!(after.with_clients, held.ranges);
    let missing = after.missing(Promise::Unique, 1001, None);
    let missing = RangeSet::of(missing.iter().map(|missing| missing.range));
    let client = RangeSet::of(held.ranges.iter().copied());
    assert_eq!(missing.difference(&client), missing, "the positions of the client are not missing");
    let unused = vec![range(1011, 1021)];
    assert_eq!(
        store.end_client_lease(held.id, unused.clone(), LeaseOwner::Any).await,
        Ok(lease_end(&held, &unused))
    );
    let missing = account(&store).await.missing(Promise::Unique, 1001, None);
    assert!(missing.contains(&lost(1011, 1021)), "{missing:?}");
}

pub async fn leases_are_listed_in_pages<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let mut held: Vec<ClientLease> =
        (0..5).map(|at| client_lease("a", &[(at * 10, at * 10 + 2), (at * 10 + 5, at * 10 + 9)])).collect();
    held.sort_by_key(|lease| lease.id);
    for lease in &held {
        store.put_client_lease(lease.clone(), UsedLeases::default()).await.expect("a write");
    }
    let of_series =
        |name: &str| ClientLeaseFilter { series: Some(series(name)), ..ClientLeaseFilter::default() };
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.client_leases(of_series("document"), after, 2).await.expect("a read");
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        seen.extend(page);
    }
    assert_eq!(seen, held);
    assert_eq!(store.client_leases(of_series("other"), None, 10).await, Ok(vec![]));
}
