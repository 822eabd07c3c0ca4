//! What is moved besides cursors, documents and gaps: positions that were set aside, and shared pools.

use bates_core::{
    GapReason, GrantPurpose, GrantRequest, MissingRange, Pool, PoolSettlement, PositionRange, RenewRequest,
    ScopeId, Store,
};

use super::exercise::{self, definition, granted, lease, positions, series};
use super::pools::server;

/// More than a page may have.
const MANY: u64 = 12_000;

fn scope_id(scope: &str) -> ScopeId {
    ScopeId { series: series("carried"), ..exercise::scope_id(scope) }
}

fn want(scope: &str, purpose: GrantPurpose) -> GrantRequest {
    GrantRequest { end: 100_000, purpose, ..exercise::want(scope_id(scope), 10) }
}

/// Three scopes with positions set aside, so that a page ends within one and has some of two; and pools.
pub(super) async fn fill_carried<S: Store>(store: &S) {
    store.pin(definition("carried"), None).await.expect("a pin");
    let every_second = (0..MANY).map(|at| 1_001 + 2 * at).collect();
    for (scope, values) in [("few", vec![1_003, 1_005]), ("many", every_second), ("more", vec![1_002])] {
        assert_eq!(store.adopt_positions(scope_id(scope), positions(values)).await, Ok(0));
    }
    fill_pools(store).await;
}

/// A pool that was never filled, and one of which something was popped, something is pushed, and something not yet,
/// in a scope of which a process holds something, too.
async fn fill_pools<S: Store>(store: &S) {
    assert_eq!(store.pool(scope_id("asked")).await, Ok(Pool::default()));
    for seen in 0..42 {
        let renewal = RenewRequest { expected_epoch: seen, server: server("s") };
        let begun =
            store.renew_pool(scope_id("pooled"), renewal).await.expect("a write").expect("it was seen");
        assert_eq!(begun.epoch, seen + 1);
    }
    assert_eq!(granted(store, want("pooled", GrantPurpose::Hold)).await.range, lease(1_001, 1_011));
    assert_eq!(granted(store, want("pooled", GrantPurpose::Pool)).await.range, lease(1_011, 1_021));
    let pushed = Some(lease(1_011, 1_017));
    let settling = PoolSettlement { epoch: 42, pushed, unused: None, popped_to: Some(1_014) };
    store.settle_pool(scope_id("pooled"), settling).await.expect("a write");
}

/// All that was set aside in all series, read in small pages.
pub(super) async fn told_of_carried<S: Store>(store: &S) -> Vec<String> {
    let mut told = Vec::new();
    for (definition, _) in store.definitions().await.expect("a read") {
        let mut after = None;
        while let page = store.moved_adoptions(definition.series.clone(), after, 700).await.expect("a page")
            && let Some(last) = page.last()
        {
            assert!(page.iter().map(|adopted| adopted.positions.len()).sum::<usize>() <= 700);
            after = last.positions.last().map(|position| (last.scope.clone(), *position));
            for adopted in page {
                let positions = adopted.positions.iter();
                told.extend(positions.map(|position| format!("{} {position}", adopted.scope)));
            }
        }
    }
    assert_eq!(told.len() as u64, MANY + 3);
    told
}

/// No grant holds what was set aside, and pools begin anew without what they held.
pub(super) async fn carried_goes_on<S: Store>(store: &S) {
    let next = async |scope| granted(store, want(scope, GrantPurpose::Pool)).await.range;
    assert_eq!(next("few").await, lease(1_001, 1_003));
    assert_eq!(next("few").await, lease(1_004, 1_005));
    assert_eq!(next("few").await, lease(1_006, 1_016));
    assert_eq!(next("many").await, lease(1_002, 1_003));
    store.raise_floor(scope_id("many"), 24_995).await.expect("a floor");
    for expected in [lease(24_996, 24_997), lease(24_998, 24_999), lease(25_000, 25_010)] {
        assert_eq!(next("many").await, expected, "the last page as well as the first");
    }
    assert_eq!(next("more").await, lease(1_001, 1_002));
    assert_eq!(next("more").await, lease(1_003, 1_013));
    pools_go_on(store).await;
}

async fn pools_go_on<S: Store>(store: &S) {
    let missing = |range, reason| MissingRange { range, reason };
    let expected = [
        missing(lease(1_001, 1_011), GapReason::CrashSkip),
        missing(lease(1_014, 1_017), GapReason::PoolInvalidated),
        missing(lease(1_017, 1_021), GapReason::CrashSkip),
    ];
    assert_eq!(standing(store).await, (vec![], expected.to_vec()), "what was popped is missing to nobody");
    let pools = store.pools(series("carried"), None, 10).await.expect("a read");
    let (asked, pooled) = (scope_id("asked").scope, scope_id("pooled").scope);
    assert_eq!(pools, [(asked, Pool::default()), (pooled, Pool { epoch: 42, server: None })]);
    let renewal = RenewRequest { expected_epoch: 42, server: server("s") };
    let begun = store.renew_pool(scope_id("pooled"), renewal).await.expect("a write");
    assert_eq!(begun.map(|pool| pool.epoch), Some(43), "above all that the old store began");
    let next = granted(store, want("pooled", GrantPurpose::Pool)).await.range;
    assert_eq!(next, lease(1_021, 1_031));
    assert_eq!(standing(store).await, (vec![next], expected.to_vec()), "nothing else is lost");
}

/// What is held, and what is lost, of the pool.
async fn standing<S: Store>(store: &S) -> (Vec<PositionRange>, Vec<MissingRange>) {
    let mut account = super::pools::account(store, scope_id("pooled")).await;
    account.lost.sort_unstable();
    (account.held, account.lost)
}
