//! One claim a test: leases, refills, waiting, eviction, stopping.

use std::collections::HashSet;
use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{Dispenser, HeldLevel, IssueError, Limits, Promise, ReleaseReport};
use bates_testkit::{Fault, MemoryStore};

use super::{counter, gated, scope, series, take, watched};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_callers_get_every_position_once_and_none_is_skipped() {
    let store = watched(&Arc::default()).await;
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
        assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "each caller sees them ascend");
        assert!(positions.iter().all(|position| seen.insert(*position)), "never twice");
    }
    assert_eq!(seen.iter().max(), Some(&(seen.len() as u64)), "and without holes");
    assert_eq!(store.concurrent_max(), 1, "one refill of a scope at a time");
}

#[tokio::test]
async fn the_cursor_is_moved_before_anything_is_handed_out() {
    let store = watched(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    for _ in 0..500 {
        let position = take(&dispenser, &counter(Promise::Ordered), "a", 1).await[0];
        let scope_id = bates_core::ScopeId { series: "counter".parse().unwrap(), scope: scope("a") };
        assert!(store.cursor(scope_id).await.unwrap().unwrap().next > position);
    }
}

#[tokio::test]
async fn leases_start_small_and_grow_eightfold_up_to_their_cap() {
    let store = watched(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let limits = Limits { lease_max: 5_000, ..Limits::default() };
    let series = series("{seq}", Promise::Unique, limits);
    while store.counts().len() < 6 {
        take(&dispenser, &series, "a", 1).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(store.counts()[..5], [32, 256, 2_048, 5_000, 5_000]);
    // A request larger than any lease is granted whole.
    assert_eq!(take(&dispenser, &series, "b", 6_000).await.len(), 6_000);
}

#[tokio::test]
async fn the_next_lease_is_fetched_at_the_watermark_while_callers_go_on() {
    let store = gated(&Arc::default()).await;
    store.let_through(1);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Unique);
    for expected in 1..=24 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected]);
    }
    tokio::task::yield_now().await;
    assert_eq!(store.counts(), [32, 256], "a quarter is left: the next lease is on its way");
    for expected in 25..=32 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected], "nobody waits for it");
    }
    store.let_through(1);
    assert_eq!(take(&dispenser, &series, "a", 1).await, [33]);
}

#[tokio::test]
async fn beyond_the_bound_callers_are_told_it_is_busy_and_nothing_is_lost() {
    let store = gated(&Arc::default()).await;
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
    assert_eq!(store.counts(), [32], "however many wait, one refill is under way");
    let refused = dispenser.take(&series, &scope("a"), 1).await.unwrap_err();
    assert_eq!((refused.code().name(), refused.code().may_burn()), ("busy", false));
    assert!(refused.to_string().contains("3 callers wait already"), "{refused}");
    store.let_through(10);
    let mut served = Vec::new();
    for caller in waiting {
        served.push(caller.await.unwrap());
    }
    assert_eq!(served, [1, 2, 3], "in the order in which they came");
    assert_eq!(take(&dispenser, &series, "a", 1).await, [4]);
}

#[tokio::test]
async fn who_comes_while_somebody_waits_waits_behind() {
    let store = gated(&Arc::default()).await;
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
    assert!(!small.is_finished(), "twelve are held, and still it waits");
    assert!(dispenser.try_take(&series, scope("a").as_str(), 1).is_none());
    store.let_through(10);
    assert_eq!(large.await.unwrap(), (21..=70).collect::<Vec<_>>());
    assert_eq!(small.await.unwrap(), [71]);
}

#[tokio::test]
async fn what_is_held_is_taken_at_once_and_what_is_not_is_left_to_those_who_wait() {
    let store = watched(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Unique);
    assert!(dispenser.try_take(&series, scope("a").as_str(), 1).is_none(), "a look creates nothing");
    assert_eq!(dispenser.scopes_held(), 0);
    take(&dispenser, &series, "a", 1).await;
    let taken = dispenser.try_take(&series, scope("a").as_str(), 3).unwrap();
    assert_eq!(taken.positions().collect::<Vec<_>>(), [2, 3, 4]);
    assert!(dispenser.try_take(&series, scope("a").as_str(), 29).is_none(), "more than is held");
    // It keeps the level up as any other caller does.
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
async fn a_scope_with_a_refill_on_its_way_is_not_evicted() {
    let store = gated(&Arc::default()).await;
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
async fn a_store_that_fails_is_said_so_and_asked_again_by_the_next_caller() {
    let store = watched(&Arc::default()).await;
    store.plan(&[Fault::BeforeWrite, Fault::AfterWrite]);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    for _ in 0..2 {
        let error = dispenser.take(&series, &scope("a"), 1).await.unwrap_err();
        assert_eq!((error.code().name(), error.code().may_burn()), ("store_unavailable", true));
    }
    let next = take(&dispenser, &series, "a", 1).await[0];
    assert!(next > 1, "what may have been granted is never granted again: {next}");
    assert_eq!(store.counts().len(), 3, "no circle");
}

#[tokio::test]
async fn a_failing_refill_does_not_take_away_what_is_held() {
    let store = watched(&Arc::default()).await;
    store.plan(&[Fault::None, Fault::BeforeWrite, Fault::BeforeWrite, Fault::BeforeWrite]);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    for expected in 1..=27 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected]);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_its_positions_to_the_next() {
    let store = gated(&Arc::default()).await;
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
    assert_eq!(dispenser.close().await, ReleaseReport { scopes: 1, returned: 31, gaps: 0 }, "in one piece");
}

#[tokio::test]
async fn the_space_ends_exactly_and_stays_ended() {
    let store = watched(&Arc::default()).await;
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
async fn a_space_that_gets_positions_back_is_no_longer_exhausted() {
    let memory: Arc<MemoryStore> = Arc::default();
    let series = series("{seq:1}", Promise::Unique, Limits::default());
    let first = Dispenser::new(watched(&memory).await);
    for expected in 1..=8 {
        assert_eq!(take(&first, &series, "a", 1).await, [expected]);
    }
    while first.level(&series, &scope("a")).is_none_or(|level| level.held == 0) {
        tokio::task::yield_now().await;
    }
    let second = Dispenser::new(watched(&memory).await);
    for _ in 0..2 {
        assert_eq!(second.take(&series, &scope("a"), 1).await.unwrap_err().code().name(), "exhausted");
        tokio::task::yield_now().await;
    }
    assert_eq!(first.close().await, ReleaseReport { scopes: 1, returned: 1, gaps: 0 });
    assert_eq!(take(&second, &series, "a", 1).await, [9]);
}

#[tokio::test]
async fn leases_shrink_before_the_end_and_never_below_what_is_waited_for() {
    let store = watched(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = series("{seq:4}", Promise::Unique, Limits::default());
    let (mut most, mut taken) = (0, 0);
    while taken < 9_999 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [taken + 1]);
        taken += 1;
        let held = dispenser.level(&series, &scope("a")).map_or(0, |level| level.held);
        // What is left of the lease in use, and the next one.
        assert!(held <= 1 + (9_999 - taken + held) / 64 * 5 / 4, "{held} held when {taken} are taken");
        most = held.max(most);
        tokio::task::yield_now().await;
    }
    assert!(most > 100, "leases are not small from the beginning: {most}");
    let fresh = Dispenser::new(watched(&Arc::default()).await);
    assert_eq!(take(&fresh, &series, "a", 9_999).await.len(), 9_999, "whoever waits gets all");
}

#[tokio::test]
async fn whoever_has_handed_out_its_last_position_tells_the_store() {
    let store = watched(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = series("{seq:2}", Promise::Unique, Limits::default());
    assert_eq!(take(&dispenser, &series, "a", 95).await.len(), 95);
    for expected in 96..=99 {
        assert_eq!(take(&dispenser, &series, "a", 1).await, [expected]);
    }
    while dispenser.scopes_held() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.held_from().last(), Some(&None), "nothing is held");
}

#[tokio::test]
async fn at_the_end_each_who_waits_gets_what_is_left_if_it_is_enough() {
    let store = gated(&Arc::default()).await;
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
async fn an_outage_does_not_make_leases_grow() {
    let store = watched(&Arc::default()).await;
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
async fn a_scope_that_is_evicted_comes_back_where_it_was() {
    let store = watched(&Arc::default()).await;
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Ordered);
    take(&dispenser, &series, "a", 3).await;
    assert_eq!(dispenser.evict_idle().await, ReleaseReport::default(), "it was just used");
    assert_eq!(dispenser.evict_idle().await, ReleaseReport { scopes: 1, returned: 29, gaps: 0 });
    assert_eq!(dispenser.scopes_held(), 0);
    assert_eq!(dispenser.level(&series, &scope("a")), None, "a look creates nothing");
    assert_eq!(take(&dispenser, &series, "a", 1).await, [4]);
    assert_eq!(dispenser.level(&series, &scope("a")), Some(HeldLevel { scopes: 1, held: 31 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn eviction_under_load_repeats_nothing() {
    let store = watched(&Arc::default()).await;
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
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "ordered");
        assert!(seen.into_iter().all(|position| all.insert(position)), "never twice");
    }
    evicting.abort();
}

#[tokio::test]
async fn a_clean_stop_gives_the_tails_back_and_a_crash_skips_no_more_than_a_lease() {
    let memory: Arc<MemoryStore> = Arc::default();
    let series = counter(Promise::Ordered);
    let dispenser = Dispenser::new(watched(&memory).await);
    take(&dispenser, &series, "a", 5).await;
    take(&dispenser, &series, "b", 1).await;
    assert_eq!(dispenser.close().await, ReleaseReport { scopes: 2, returned: 27 + 31, gaps: 0 });
    assert_eq!(dispenser.take(&series, &scope("a"), 1).await, Err(IssueError::Stopping));

    let dispenser = Dispenser::new(watched(&memory).await);
    assert_eq!(take(&dispenser, &series, "a", 1).await, [6], "as if it had never stopped");
    drop(dispenser);

    let dispenser = Dispenser::new(watched(&memory).await);
    assert_eq!(take(&dispenser, &series, "a", 1).await, [38], "what a crash skips: the lease");
}

#[tokio::test]
async fn a_stop_waits_for_those_who_wait() {
    let store = gated(&Arc::default()).await;
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
    assert_eq!(closed, ReleaseReport { scopes: 1, returned: 31, gaps: 0 });
}

#[tokio::test]
async fn gapless_numbers_are_in_the_ledger_before_they_are_answered() {
    let store = watched(&Arc::default()).await;
    store.plan(&[Fault::None, Fault::BeforeWrite]);
    let dispenser = Dispenser::new(store.clone());
    let series = counter(Promise::Gapless);
    let scope_id = bates_core::ScopeId { series: "counter".parse().unwrap(), scope: scope("a") };
    assert_eq!(take(&dispenser, &series, "a", 2).await, [1, 2]);
    assert!(dispenser.take(&series, &scope("a"), 1).await.is_err());
    assert_eq!(take(&dispenser, &series, "a", 1).await, [3], "a failed call leaves no hole");
    let ledger = store.issued_ranges(scope_id).await.unwrap();
    assert_eq!(ledger.iter().map(|lease| (lease.from(), lease.to())).collect::<Vec<_>>(), [(1, 4)]);
    assert_eq!(dispenser.scopes_held(), 0, "nothing is held in memory");
}

#[tokio::test]
async fn a_scope_too_many_is_refused_with_the_limit() {
    let store = watched(&Arc::default()).await;
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
    assert_eq!(take(&dispenser, &series, "a", 1).await, [2], "those that are there go on");
}

#[tokio::test]
async fn a_scope_that_is_warmed_is_granted_once_and_gives_from_its_start() {
    let store = gated(&Arc::default()).await;
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
    assert_eq!(store.counts(), [32, 32], "one grant each, however often it was warmed");
}

#[tokio::test]
async fn warming_what_may_not_be_leaves_no_trace() {
    let store = watched(&Arc::default()).await;
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

/// Two nodes on one store, asked in turn by a client that switches between them.
#[tokio::test]
async fn an_ordered_series_on_a_shared_store_is_ordered_across_nodes_and_holds_nothing() {
    let store = Arc::new(MemoryStore::shared());
    let nodes = [watched(&store).await, watched(&store).await].map(Dispenser::new);
    let ordered = counter(Promise::Ordered);
    for turn in 0..20_u64 {
        let node = &nodes[usize::from(turn % 3 == 0)];
        node.prefetch(&ordered, &scope("a"));
        assert_eq!(take(node, &ordered, "a", 2).await, [2 * turn + 1, 2 * turn + 2]);
        assert!(node.try_take(&ordered, scope("a").as_str(), 1).is_none(), "nothing is held in memory");
    }
    assert_eq!(nodes[0].level(&ordered, &scope("a")), None);
    assert_eq!(nodes[0].peek(&ordered, &scope("a")).await, Ok(Some(41)));
    // Without that promise each node has leases of its own.
    let unique = counter(Promise::Unique);
    assert_eq!(take(&nodes[0], &unique, "b", 1).await, [1]);
    assert_eq!(take(&nodes[1], &unique, "b", 1).await, [33]);
    let refused =
        nodes[0].take(&series("{seq:1}", Promise::Ordered, Limits::default()), &scope("c"), 10).await;
    assert_eq!(refused.unwrap_err().code().name(), "exhausted", "all or none, with the right code");
}
