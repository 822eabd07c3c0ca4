//! The dispenser: ranges, refills, waiting callers, eviction and stopping.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{Dispenser, HeldLevel, IssueError, Limits, Promise, ReleaseReport};
use bates_testkit::{Fault, MemoryStore};

use super::{counter, open_gated_node, open_node, scope, series, take};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_callers_get_every_position_exactly_once() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let callers: Vec<_> = (0..50)
        .map(|caller: u64| {
            let dispenser = dispenser.clone();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                for _ in 0..200 {
                    seen.extend(take(&dispenser, &counter(Promise::Unique), "a", 1 + caller % 3).await);
                }
                seen
            })
        })
        .collect();
    let mut seen = HashSet::new();
    for caller in callers {
        let positions = caller.await.unwrap();
        assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "positions ascend for each caller");
        assert!(positions.iter().all(|position| seen.insert(*position)), "never twice");
    }
    assert_eq!(seen.iter().max(), Some(&(seen.len() as u64)), "no position is skipped");
    assert_eq!(store.concurrent_max(), 1, "one refill of a scope at a time");
}

#[tokio::test]
async fn the_cursor_moves_before_a_position_is_issued() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    for _ in 0..500 {
        let position = take(&dispenser, &counter(Promise::Ordered), "a", 1).await[0];
        let scope_id = bates_core::ScopeId { series: "counter".parse().unwrap(), scope: scope("a") };
        assert!(store.cursor(scope_id).await.unwrap().unwrap().next > position);
    }
}

#[tokio::test]
async fn ranges_start_small_and_grow_eightfold_up_to_their_cap() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let limits = Limits { lease_max: 5_000, ..Limits::default() };
    let series = series("{seq}", Promise::Unique, limits);
    while store.counts().len() < 6 {
        take(&dispenser, &series, "a", 1).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(store.counts()[..5], [32, 256, 2_048, 5_000, 5_000]);
    // A request larger than the cap is granted whole.
    assert_eq!(take(&dispenser, &series, "b", 6_000).await.len(), 6_000);
}

#[tokio::test]
async fn the_next_range_is_fetched_at_the_watermark_while_callers_continue() {
    let store = open_gated_node(&Arc::default()).await;
    store.let_through(1);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Unique);
    for expected in 1..=24 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected]);
    }
    tokio::task::yield_now().await;
    assert_eq!(store.counts(), [32, 256], "a quarter is left: the next range was requested");
    for expected in 25..=32 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected], "no caller waits for the next range");
    }
    store.let_through(1);
    assert_eq!(take(&dispenser, &series, "a", 1).await, [33]);
}

#[tokio::test]
async fn callers_above_the_limit_are_refused_as_busy_and_lose_nothing() {
    let store = open_gated_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let limits = Limits { waiters_max: 3, ..Limits::default() };
    let series = series("{seq}", Promise::Ordered, limits);
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let (dispenser, series) = (dispenser.clone(), series.clone());
            tokio::spawn(async move { take(&dispenser, &series, "a", 1).await[0] })
        })
        .collect();
    while store.counts().is_empty() {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    assert_eq!(store.counts(), [32], "all waiting callers share one refill");
    let refused = dispenser.take(&series, &scope("a"), 1).await.unwrap_err();
    assert_eq!((refused.code().name(), refused.code().may_burn()), ("busy", false));
    assert!(refused.to_string().contains("3 callers are waiting"), "{refused}");
    store.let_through(10);
    let mut served = Vec::new();
    for caller in waiting {
        served.push(caller.await.unwrap());
    }
    assert_eq!(served, [1, 2, 3], "callers are served in the order of arrival");
    assert_eq!(take(&dispenser, &series, "a", 1).await, [4]);
}

#[tokio::test]
async fn a_new_caller_queues_behind_waiting_callers() {
    let store = open_gated_node(&Arc::default()).await;
    store.let_through(1);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    take(&dispenser, &series, "a", 20).await;
    let start = |count| {
        let (dispenser, series) = (dispenser.clone(), series.clone());
        tokio::spawn(async move { take(&dispenser, &series, "a", count).await })
    };
    let large = start(50);
    while store.counts().len() < 2 {
        tokio::task::yield_now().await;
    }
    let small = start(1);
    tokio::task::yield_now().await;
    assert!(!small.is_finished(), "it waits although twelve positions are held");
    assert!(dispenser.try_take(&series, scope("a").as_str(), 1).is_none());
    store.let_through(10);
    assert_eq!(large.await.unwrap(), (21..=70).collect::<Vec<_>>());
    assert_eq!(small.await.unwrap(), [71]);
}

#[tokio::test]
async fn try_take_takes_only_positions_that_are_held() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Unique);
    assert!(dispenser.try_take(&series, scope("a").as_str(), 1).is_none(), "it creates no cell");
    assert_eq!(dispenser.scopes_held(), 0);
    take(&dispenser, &series, "a", 1).await;
    let taken = dispenser.try_take(&series, scope("a").as_str(), 3).unwrap();
    assert_eq!(taken.positions().collect::<Vec<_>>(), [2, 3, 4]);
    assert!(dispenser.try_take(&series, scope("a").as_str(), 29).is_none(), "more positions than are held");
    // It triggers refills as any other caller does.
    for expected in 5..=500 {
        let taken = loop {
            match dispenser.try_take(&series, scope("a").as_str(), 1) {
                Some(taken) => break taken,
                None => tokio::task::yield_now().await,
            }
        };
        assert_eq!(taken.positions().collect::<Vec<_>>(), [expected]);
    }
}

#[tokio::test]
async fn a_scope_with_a_refill_under_way_is_not_evicted() {
    let store = open_gated_node(&Arc::default()).await;
    store.let_through(1);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    take(&dispenser, &series, "a", 30).await;
    while store.counts().len() < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..3 {
        assert_eq!(dispenser.evict_idle().await, ReleaseReport::default());
    }
    store.let_through(10);
    assert_eq!(take(&dispenser, &series, "a", 40).await, (31..=70).collect::<Vec<_>>(), "nothing was lost");
}

#[tokio::test]
async fn a_failed_grant_is_reported_and_the_next_caller_tries_again() {
    let store = open_node(&Arc::default()).await;
    store.plan(&[Fault::BeforeWrite, Fault::AfterWrite]);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    for _ in 0..2 {
        let error = dispenser.take(&series, &scope("a"), 1).await.unwrap_err();
        assert_eq!((error.code().name(), error.code().may_burn()), ("store_unavailable", true));
    }
    let next = take(&dispenser, &series, "a", 1).await[0];
    assert!(next > 1, "a range that may have been granted is never granted again: {next}");
    assert_eq!(store.counts().len(), 3, "one grant per caller, no retry loop");
}

#[tokio::test]
async fn a_failing_refill_leaves_the_held_range_usable() {
    let store = open_node(&Arc::default()).await;
    store.plan(&[Fault::None, Fault::BeforeWrite, Fault::BeforeWrite, Fault::BeforeWrite]);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    for expected in 1..=27 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected]);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_positions_of_a_cancelled_caller_go_to_the_next() {
    let store = open_gated_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    let gone = {
        let (dispenser, series) = (dispenser.clone(), series.clone());
        tokio::spawn(async move { take(&dispenser, &series, "a", 5).await })
    };
    while store.counts().is_empty() {
        tokio::task::yield_now().await;
    }
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    store.let_through(10);
    assert_eq!(take(&dispenser, &series, "a", 1).await, [1]);
    assert_eq!(
        dispenser.close().await,
        ReleaseReport { scopes: 1, returned: 31, gaps: 0, skipped: 0 },
        "the range was not split"
    );
}

#[tokio::test]
async fn the_last_position_is_issued_and_the_scope_stays_exhausted() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = series("{seq:2}", Promise::Unique, Limits::default());
    for expected in 1..=97 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected]);
    }
    let refused = dispenser.take(&series, &scope("a"), 3).await.unwrap_err();
    let scope_id = bates_core::ScopeId { series: "counter".parse().unwrap(), scope: scope("a") };
    assert_eq!(refused, IssueError::Exhausted { scope_id, last: 99, left: 2, wanted: 3 });
    assert_eq!(take(&dispenser, &series, "a", 2).await, [98, 99], "a refusal takes nothing");
    for _ in 0..10 {
        assert_eq!(dispenser.take(&series, &scope("a"), 1).await.unwrap_err().code().name(), "exhausted");
    }
}

#[tokio::test]
async fn an_exhausted_scope_recovers_when_positions_are_returned() {
    let memory: Arc<MemoryStore> = Arc::default();
    let series = series("{seq:1}", Promise::Unique, Limits::default());
    let first = Dispenser::new(open_node(&memory).await);
    for expected in 1..=8 {
        assert_eq!(take(&first, &series, "a", 1).await, [expected]);
    }
    while first.level(&series, &scope("a")).is_none_or(|level| level.held == 0) {
        tokio::task::yield_now().await;
    }
    let second = Dispenser::new(open_node(&memory).await);
    for _ in 0..2 {
        assert_eq!(second.take(&series, &scope("a"), 1).await.unwrap_err().code().name(), "exhausted");
        tokio::task::yield_now().await;
    }
    assert_eq!(first.close().await, ReleaseReport { scopes: 1, returned: 1, gaps: 0, skipped: 0 });
    assert_eq!(take(&second, &series, "a", 1).await, [9]);
}

#[tokio::test]
async fn ranges_shrink_near_the_end_but_never_below_a_waiting_request() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = series("{seq:4}", Promise::Unique, Limits::default());
    let (mut most, mut taken) = (0, 0);
    while taken < 9_999 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [taken + 1]);
        taken += 1;
        let held = dispenser.level(&series, &scope("a")).map_or(0, |level| level.held);
        // The rest of the current range, and the next range.
        assert!(held <= 1 + (9_999 - taken + held) / 64 * 5 / 4, "{held} held after {taken} were taken");
        most = held.max(most);
        tokio::task::yield_now().await;
    }
    let limits = Limits::default().within(9_999);
    assert!(most <= limits.crash_skip_max(), "a crash skips at most what an operator was told: {most}");
    assert!(most > 100, "ranges are not small from the beginning: {most}");
    let fresh = Dispenser::new(open_node(&Arc::default()).await);
    assert_eq!(
        take(&fresh, &series, "a", 9_999).await.len(),
        9_999,
        "a waiting request gets the whole space"
    );
}

#[tokio::test]
async fn a_node_that_issued_its_last_position_reports_that_it_holds_none() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = series("{seq:2}", Promise::Unique, Limits::default());
    assert_eq!(take(&dispenser, &series, "a", 95).await.len(), 95);
    for expected in 96..=99 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected]);
    }
    while dispenser.scopes_held() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.held_from().last(), Some(&None));
}

#[tokio::test]
async fn near_the_end_only_callers_that_the_remainder_can_serve_succeed() {
    let store = open_gated_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = series("{seq:1}", Promise::Unique, Limits::default());
    let start = |count| {
        let (dispenser, series) = (dispenser.clone(), series.clone());
        tokio::spawn(async move { dispenser.take(&series, &scope("a"), count).await })
    };
    let (large, small) = (start(50), start(1));
    while store.counts().is_empty() {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    store.let_through(10);
    assert_eq!(large.await.unwrap().unwrap_err().code().name(), "exhausted");
    assert_eq!(small.await.unwrap().unwrap().positions().collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn failed_grants_do_not_make_ranges_grow() {
    let store = open_node(&Arc::default()).await;
    store.plan(&[Fault::BeforeWrite; 12]);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Unique);
    for _ in 0..12 {
        assert!(dispenser.take(&series, &scope("a"), 1).await.is_err());
    }
    take(&dispenser, &series, "a", 1).await;
    assert_eq!(store.counts(), [32; 13]);
}

#[tokio::test]
async fn an_evicted_scope_continues_where_it_stopped() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    take(&dispenser, &series, "a", 3).await;
    assert_eq!(dispenser.evict_idle().await, ReleaseReport::default(), "the scope was just used");
    assert_eq!(dispenser.evict_idle().await, ReleaseReport { scopes: 1, returned: 29, gaps: 0, skipped: 0 });
    assert_eq!(dispenser.scopes_held(), 0);
    assert_eq!(dispenser.level(&series, &scope("a")), None, "it creates no cell");
    assert_eq!(take(&dispenser, &series, "a", 1).await, [4]);
    assert_eq!(dispenser.level(&series, &scope("a")), Some(HeldLevel { scopes: 1, held: 31 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn eviction_under_load_repeats_no_position() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let evicting = {
        let dispenser = dispenser.clone();
        tokio::spawn(async move {
            loop {
                dispenser.evict_idle().await;
                tokio::task::yield_now().await;
            }
        })
    };
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let dispenser = dispenser.clone();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                for _ in 0..3_000 {
                    seen.extend(take(&dispenser, &counter(Promise::Ordered), "a", 1).await);
                    tokio::task::yield_now().await;
                }
                seen
            })
        })
        .collect();
    let mut all = HashSet::new();
    for caller in callers {
        let seen = caller.await.unwrap();
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "positions ascend for each caller");
        assert!(seen.into_iter().all(|position| all.insert(position)), "never twice");
    }
    evicting.abort();
}

#[tokio::test]
async fn a_clean_stop_returns_unused_positions_and_a_crash_skips_at_most_one_range() {
    let memory: Arc<MemoryStore> = Arc::default();
    let series = counter(Promise::Ordered);
    let dispenser = Dispenser::new(open_node(&memory).await);
    take(&dispenser, &series, "a", 5).await;
    take(&dispenser, &series, "b", 1).await;
    assert_eq!(dispenser.close().await, ReleaseReport { scopes: 2, returned: 27 + 31, gaps: 0, skipped: 0 });
    assert_eq!(dispenser.take(&series, &scope("a"), 1).await, Err(IssueError::Stopping));

    let dispenser = Dispenser::new(open_node(&memory).await);
    assert_eq!(take(&dispenser, &series, "a", 1).await, [6], "the numbers continue after the stop");
    drop(dispenser);

    let dispenser = Dispenser::new(open_node(&memory).await);
    assert_eq!(take(&dispenser, &series, "a", 1).await, [38], "the crash skipped the rest of the range");
}

#[tokio::test]
async fn a_stop_without_time_skips_what_it_cannot_return() {
    let memory: Arc<MemoryStore> = Arc::default();
    let series = counter(Promise::Ordered);
    let dispenser = Dispenser::new(open_node(&memory).await);
    take(&dispenser, &series, "a", 5).await;
    take(&dispenser, &series, "b", 1).await;
    let closed = dispenser.close_within(Duration::ZERO).await;
    assert_eq!(closed, ReleaseReport { scopes: 2, returned: 0, gaps: 0, skipped: 27 + 31 });

    let dispenser = Dispenser::new(open_node(&memory).await);
    assert_eq!(take(&dispenser, &series, "a", 1).await, [33], "the rest of the range is skipped");
    let closed = dispenser.close_within(Duration::from_hours(1)).await;
    assert_eq!(closed, ReleaseReport { scopes: 1, returned: 31, gaps: 0, skipped: 0 });
}

#[tokio::test]
async fn a_stop_serves_waiting_callers_first() {
    let store = open_gated_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Unique);
    let waiting = {
        let (dispenser, series) = (dispenser.clone(), series.clone());
        tokio::spawn(async move { take(&dispenser, &series, "a", 1).await })
    };
    while store.counts().is_empty() {
        tokio::task::yield_now().await;
    }
    let closing = {
        let dispenser = dispenser.clone();
        tokio::spawn(async move { dispenser.close().await })
    };
    tokio::task::yield_now().await;
    store.let_through(10);
    assert_eq!(waiting.await.unwrap(), [1]);
    let closed = closing.await.unwrap();
    assert_eq!(closed, ReleaseReport { scopes: 1, returned: 31, gaps: 0, skipped: 0 });
}

#[tokio::test]
async fn gapless_positions_are_in_the_ledger_before_they_are_answered() {
    let store = open_node(&Arc::default()).await;
    store.plan(&[Fault::None, Fault::BeforeWrite]);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Gapless);
    let scope_id = bates_core::ScopeId { series: "counter".parse().unwrap(), scope: scope("a") };
    assert_eq!(take(&dispenser, &series, "a", 2).await, [1, 2]);
    assert!(dispenser.take(&series, &scope("a"), 1).await.is_err());
    assert_eq!(take(&dispenser, &series, "a", 1).await, [3], "a failed call leaves no gap");
    let ledger = store.issued_ranges(scope_id).await.unwrap();
    assert_eq!(ledger.iter().map(|range| (range.from(), range.to())).collect::<Vec<_>>(), [(1, 4)]);
    assert_eq!(dispenser.scopes_held(), 0, "nothing is held in memory");
}

#[tokio::test]
async fn a_scope_above_the_limit_is_refused_with_the_limit() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let limits = Limits { scopes_max: 2, ..Limits::default() };
    let series = series("{seq}", Promise::Unique, limits);
    take(&dispenser, &series, "a", 1).await;
    take(&dispenser, &series, "b", 1).await;
    let refused = dispenser.take(&series, &scope("c"), 1).await.unwrap_err();
    assert_eq!((refused.code().name(), refused.code().may_burn()), ("too_many_scopes", false));
    assert!(refused.to_string().contains("the limit is 2"), "{refused}");
    for name in 0..1_000 {
        assert!(dispenser.take(&series, &scope(&format!("c{name}")), 1).await.is_err());
    }
    while dispenser.scopes_held() > 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(take(&dispenser, &series, "a", 1).await, [2], "existing scopes continue");
}

#[tokio::test]
async fn a_prefetched_scope_is_granted_once_and_issued_from_its_start() {
    let store = open_gated_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    for name in ["a", "b", "a"] {
        dispenser.prefetch(&series, &scope(name));
    }
    let waiting = {
        let (dispenser, series) = (dispenser.clone(), series.clone());
        tokio::spawn(async move { take(&dispenser, &series, "b", 2).await })
    };
    store.let_through(2);
    assert_eq!(waiting.await.unwrap(), [1, 2]);
    while dispenser.level(&series, &scope("a")).is_none_or(|level| level.held == 0) {
        tokio::task::yield_now().await;
    }
    dispenser.prefetch(&series, &scope("a"));
    store.let_through(10);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(take(&dispenser, &series, "a", 1).await, [1]);
    assert_eq!(store.counts(), [32, 32], "one grant per scope, however often it was prefetched");
}

#[tokio::test]
async fn prefetching_a_scope_that_is_refused_or_gapless_holds_nothing() {
    let store = open_node(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let limits = Limits { scopes_max: 1, ..Limits::default() };
    let series = series("{seq}", Promise::Unique, limits);
    take(&dispenser, &series, "a", 1).await;
    dispenser.prefetch(&series, &scope("b"));
    while store.counts().len() < 2 || dispenser.scopes_held() > 1 {
        tokio::task::yield_now().await;
    }
    dispenser.prefetch(&counter(Promise::Gapless), &scope("c"));
    assert_eq!(dispenser.scopes_held(), 1, "a gapless scope is never held");
}

/// A client switches between two nodes on one store.
#[tokio::test]
async fn an_ordered_series_on_a_shared_store_is_ordered_across_nodes_and_held_by_none() {
    let store = Arc::new(MemoryStore::shared());
    let nodes = [open_node(&store).await, open_node(&store).await].map(Dispenser::new);
    let ordered = counter(Promise::Ordered);
    for turn in 0..20_u64 {
        let node = &nodes[usize::from(turn % 3 == 0)];
        node.prefetch(&ordered, &scope("a"));
        assert_eq!(take(node, &ordered, "a", 2).await, [2 * turn + 1, 2 * turn + 2]);
        assert!(node.try_take(&ordered, scope("a").as_str(), 1).is_none(), "nothing is held in memory");
    }
    assert_eq!(nodes[0].level(&ordered, &scope("a")), None);
    assert_eq!(nodes[0].peek(&ordered, &scope("a")).await, Ok(Some(41)));
    // In a unique series each node holds its own range.
    let unique = counter(Promise::Unique);
    assert_eq!(take(&nodes[0], &unique, "b", 1).await, [1]);
    assert_eq!(take(&nodes[1], &unique, "b", 1).await, [33]);
    let refused =
        nodes[0].take(&series("{seq:1}", Promise::Ordered, Limits::default()), &scope("c"), 10).await;
    assert_eq!(refused.unwrap_err().code().name(), "exhausted", "a partial grant is refused");
}
