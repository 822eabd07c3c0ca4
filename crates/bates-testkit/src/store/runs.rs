//! Takes runs, single numbers and reservations from a machine on a real store, and accounts for every position.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bates_core::{
    Actor, DocumentContent, KeyTemplate, Limits, Machine, Promise, ScopeId, ScopeKey, ScopeParams,
    SeriesSpec, Store, SystemRuntime,
};

use super::exercise::{DataSet, positions, series};

const PARAMETERS: [(&str, &str); 1] = [("name", "a")];

/// A pseudorandom generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

pub async fn every_position_has_one_caller_or_an_explanation<D: DataSet>(fresh: impl AsyncFn() -> D) {
    for promise in Promise::ALL {
        for adopted in [vec![], vec![7, 40, 41, 60, 300, 301, 303, 700]] {
            for seed in 1..3 {
                numbers_and_runs(&fresh().await, promise, &adopted, Dice(seed)).await;
            }
        }
    }
}

async fn numbers_and_runs<D: DataSet>(data: &D, promise: Promise, adopted: &[u64], mut dice: Dice) {
    let store = Arc::new(data.open().await);
    let scope = ScopeKey::new(PARAMETERS, None).expect("a good scope");
    let machine = open_with_adopted(&store, promise, &scope, adopted).await;
    let (mut owners, mut highest) = (BTreeMap::new(), 0);
    for step in 0..150_u64 {
        let run = match dice.roll(10) {
            0..5 => take(&machine, promise, 1).await,
            5..8 => take(&machine, promise, 2 + dice.roll(30)).await,
            // After its first reservation, an ordered series is no longer served from memory.
            8 if promise != Promise::Ordered || step > 100 => Some(reserve(&machine).await),
            _ => {
                machine.evict_idle().await;
                None
            }
        };
        let Some((first, last)) = run else { continue };
        for position in first..=last {
            assert_eq!(owners.insert(position, step), None, "{position} has two owners, {promise}");
        }
        assert!(promise == Promise::Unique || first > highest, "{first} fell below {highest}, {promise}");
        highest = last;
    }
    machine.close().await;
    let scope_id = ScopeId { series: series("run"), scope };
    check_account(&*store, &scope_id, (promise, adopted), &owners.keys().copied().collect()).await;
}

/// A machine on a store in which positions were adopted before it was opened.
async fn open_with_adopted<S: Store>(
    store: &Arc<S>,
    promise: Promise,
    scope: &ScopeKey,
    adopted: &[u64],
) -> Machine<S> {
    let limits = Limits { lease_min: 8, lease_max: 256, ..Limits::default() };
    let key = KeyTemplate::parse("run:{name}").ok();
    let spec = SeriesSpec { promise, limits, key, ..SeriesSpec::new(series("run"), "{seq}") };
    let open =
        async |specs| Machine::open(store.clone(), specs, Arc::new(SystemRuntime)).await.expect("a machine");
    let before = open(vec![spec.clone()]).await;
    let entry = before.series("run").expect("it exists");
    before
        .adopt_positions(&entry, scope, positions(adopted.iter().copied()), Actor::library("test"))
        .await
        .expect("a write");
    let _ = before.sync_series().await;
    open(vec![spec]).await
}

/// The run as the caller sees it; `None` if a gapless series refused it.
async fn take<S: Store>(machine: &Machine<S>, promise: Promise, count: u64) -> Option<(u64, u64)> {
    let entry = machine.series("run").expect("it exists");
    match machine.take(&entry, (&PARAMETERS).into(), count, Actor::resp("test")).await {
        Ok(taken) => Some((taken.last() + 1 - count, taken.last())),
        Err(error) => {
            assert_eq!((promise, error.code().name()), (Promise::Gapless, "exhausted"), "{error}");
            None
        }
    }
}

async fn reserve<S: Store>(machine: &Machine<S>) -> (u64, u64) {
    let entry = machine.series("run").expect("it exists");
    let content = DocumentContent::Reservation(Duration::from_hours(1));
    let name = ScopeParams::from(&PARAMETERS);
    let reserved = machine.assign(&entry, name, content, None, "test").await.expect("a number");
    (reserved.position.value(), reserved.position.value())
}

/// Checks that each position below the cursor belongs to a caller, is adopted, or is lost for a reason; exactly one.
async fn check_account(
    store: &impl Store,
    scope_id: &ScopeId,
    (promise, adopted): (Promise, &[u64]),
    owned: &BTreeSet<u64>,
) {
    let accounts = store.scope_positions(scope_id.series.clone(), None, 10).await.expect("a read");
    let (_, account) = accounts.into_iter().find(|(key, _)| *key == scope_id.scope).expect("it exists");
    assert_eq!(account.held, [], "a closed machine holds nothing");
    let lost = account.lost.iter().flat_map(|lost| lost.range.from()..lost.range.to());
    let lost: BTreeSet<u64> = lost.filter(|position| !adopted.contains(position)).collect();
    assert_eq!(lost.intersection(owned).next(), None, "a lost position belongs to a caller, {promise}");
    let is_unexplained =
        |position: &u64| !owned.contains(position) && !lost.contains(position) && !adopted.contains(position);
    let unexplained: Vec<u64> = (1..account.next).filter(is_unexplained).collect();
    assert_eq!(unexplained, [0; 0], "gaps without a reason, {promise}");
}
