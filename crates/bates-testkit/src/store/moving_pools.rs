//! Adopted positions and shared pools in a move between stores.

use bates_core::{
    GapReason, GrantPurpose, GrantRequest, MissingRange, Pool, PoolSettlement, PositionRange, RenewRequest,
    ScopeId, Store,
};

use super::exercise::{self, definition, grant, positions, range, series};
use super::pools::server;

/// More than one page of a move holds.
const MANY: u64 = 12_000;

fn scope_id(scope: &str) -> ScopeId {
    ScopeId { series: series("adopted"), ..exercise::scope_id(scope) }
}

fn request(scope: &str, purpose: GrantPurpose) -> GrantRequest {
    GrantRequest { end: 100_000, purpose, ..exercise::request(scope_id(scope), 10) }
}

/// Three scopes with adopted positions, so that a page ends inside a scope and another spans two scopes; and pools.
pub(super) async fn fill_adopted_and_pools<S: Store>(store: &S) {
    store.pin(definition("adopted"), None).await.expect("a pin");
    let every_second = (0..MANY).map(|at| 1_001 + 2 * at).collect();
    for (scope, values) in [("few", vec![1_003, 1_005]), ("many", every_second), ("more", vec![1_002])] {
        assert_eq!(store.adopt_positions(scope_id(scope), positions(values), None).await, Ok(0));
    }
    fill_pools(store).await;
}

/// A pool that was never filled, and one with popped, pushed and not yet pushed positions. A process
/// also holds a range in the scope of the second.
async fn fill_pools<S: Store>(store: &S) {
    assert_eq!(store.pool(scope_id("empty"), None).await, Ok(Pool::default()));
    for seen in 0..42 {
        let renewal = RenewRequest { expected_epoch: seen, server: server("s") };
        let renewed = store
            .renew_pool(scope_id("pooled"), renewal)
            .await
            .expect("a write")
            .expect("the expected epoch");
        assert_eq!(renewed.epoch, seen + 1);
    }
    assert_eq!(grant(store, request("pooled", GrantPurpose::Hold)).await.range, range(1_001, 1_011));
    assert_eq!(grant(store, request("pooled", GrantPurpose::Pool)).await.range, range(1_011, 1_021));
    let pushed = Some(range(1_011, 1_017));
    let settlement = PoolSettlement { epoch: 42, pushed, unused: None, popped_to: Some(1_014) };
    store.settle_pool(scope_id("pooled"), settlement).await.expect("a write");
}

/// The adopted positions of all series, read in small pages.
pub(super) async fn list_adopted<S: Store>(store: &S) -> Vec<String> {
    let mut listed = Vec::new();
    for (definition, _) in store.definitions().await.expect("a read") {
        let mut after = None;
        while let page = store.moved_adoptions(definition.series.clone(), after, 700).await.expect("a page")
            && let Some(last) = page.last()
        {
            assert!(page.iter().map(|adopted| adopted.positions.len()).sum::<usize>() <= 700);
            after = last.positions.last().map(|position| (last.scope.clone(), *position));
            for adopted in page {
                let positions = adopted.positions.iter();
                listed.extend(positions.map(|position| format!("{} {position}", adopted.scope)));
            }
        }
    }
    assert_eq!(listed.len() as u64, MANY + 3);
    listed
}

/// No grant includes adopted positions, and the positions that pools held are lost.
pub(super) async fn check_adopted_and_pools<S: Store>(store: &S) {
    let next = async |scope| grant(store, request(scope, GrantPurpose::Pool)).await.range;
    assert_eq!(next("few").await, range(1_001, 1_003));
    assert_eq!(next("few").await, range(1_004, 1_005));
    assert_eq!(next("few").await, range(1_006, 1_016));
    assert_eq!(next("many").await, range(1_002, 1_003));
    store.raise_floor(scope_id("many"), 24_995, None).await.expect("a floor");
    for expected in [range(24_996, 24_997), range(24_998, 24_999), range(25_000, 25_010)] {
        assert_eq!(next("many").await, expected, "the last page was moved too");
    }
    assert_eq!(next("more").await, range(1_001, 1_002));
    assert_eq!(next("more").await, range(1_003, 1_013));
    check_pools(store).await;
}

async fn check_pools<S: Store>(store: &S) {
    let missing = |range, reason| MissingRange { range, reason };
    let expected = [
        missing(range(1_001, 1_011), GapReason::CrashSkip),
        missing(range(1_014, 1_017), GapReason::PoolInvalidated),
        missing(range(1_017, 1_021), GapReason::CrashSkip),
    ];
    assert_eq!(held_and_lost(store).await, (vec![], expected.to_vec()), "popped positions are not missing");
    let pools = store.pools(series("adopted"), None, 10).await.expect("a read");
    let (empty, pooled) = (scope_id("empty").scope, scope_id("pooled").scope);
    assert_eq!(pools, [(empty, Pool::default()), (pooled, Pool { epoch: 42, server: None })]);
    let renewal = RenewRequest { expected_epoch: 42, server: server("s") };
    let renewed = store.renew_pool(scope_id("pooled"), renewal).await.expect("a write");
    assert_eq!(renewed.map(|pool| pool.epoch), Some(43), "above every epoch of the old store");
    let next = grant(store, request("pooled", GrantPurpose::Pool)).await.range;
    assert_eq!(next, range(1_021, 1_031));
    assert_eq!(held_and_lost(store).await, (vec![next], expected.to_vec()), "the grant loses nothing else");
}

/// The held and the lost ranges of the pool.
async fn held_and_lost<S: Store>(store: &S) -> (Vec<PositionRange>, Vec<MissingRange>) {
    let mut account = super::pools::account(store, scope_id("pooled")).await;
    account.lost.sort_unstable();
    (account.held, account.lost)
}
