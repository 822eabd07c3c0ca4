//! The pool filler in virtual time, on lists in memory that can lose their content.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{
    FillAmount, Filler, GapFilter, GapReason, KeyTemplate, LISTS_MAX, ListValue, Machine, PoolSet,
    PoolSettings, ScopeMatcher, SeriesSpec,
};
use bates_testkit::{MemoryPool, MemoryStore, SimulatedRuntime};
use tokio::sync::watch;

const SECOND: Duration = Duration::from_secs(1);

/// A process that fills the lists of a series.
struct Node {
    machine: Arc<Machine<MemoryStore>>,
    stop: watch::Sender<bool>,
    filling: tokio::task::JoinHandle<()>,
}

impl Node {
    async fn start(store: MemoryStore, lists: &MemoryPool, runtime: Arc<SimulatedRuntime>) -> Self {
        let spec = SeriesSpec::new("document".parse().unwrap(), "{project}-{seq}");
        let machine = Arc::new(Machine::open(Arc::new(store), vec![spec], runtime).await.unwrap());
        let scope = ScopeMatcher::new([("project".into(), "A".into())]);
        let settings = PoolSettings {
            key: KeyTemplate::parse("pool:{project}").unwrap(),
            value: ListValue::Id,
            low: 50,
            amount: FillAmount::UpTo(100),
            scopes: vec![scope],
            lists_max: LISTS_MAX,
        };
        let pools = Arc::new(PoolSet::new(Box::new(lists.clone()), settings));
        machine.set_pools("document".parse().unwrap(), pools);
        let entry = machine.series("document").unwrap();
        let filler = Filler::new(machine.clone(), entry, Box::new(|_| {})).unwrap();
        let (stop, stopped) = watch::channel(false);
        let filling = tokio::spawn(filler.run(stopped));
        Self { machine, stop, filling }
    }

    async fn stop(self) -> Arc<Machine<MemoryStore>> {
        self.stop.send(true).unwrap();
        self.filling.await.unwrap();
        self.machine
    }
}

fn pop(lists: &MemoryPool, count: usize) -> Vec<String> {
    (0..count).map_while(|_| lists.pop("pool:A")).collect()
}

#[tokio::test(start_paused = true)]
async fn two_fillers_keep_a_list_full_and_push_every_number_once() {
    let runtime = Arc::new(SimulatedRuntime::new(1));
    let store = MemoryStore::shared();
    let lists = MemoryPool::new(runtime.clone());
    let nodes = [
        Node::start(store.node(), &lists, runtime.clone()).await,
        Node::start(store.node(), &lists, runtime.clone()).await,
    ];
    let mut all = Vec::new();
    for _ in 0..20 {
        tokio::time::sleep(2 * SECOND).await;
        let numbers = pop(&lists, 90);
        assert_eq!(numbers.len(), 90, "the list was filled");
        all.extend(numbers);
    }
    let once: BTreeSet<&String> = all.iter().collect();
    assert_eq!(once.len(), all.len(), "each number once");
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_list_of_a_server_that_restarts_from_an_old_snapshot_is_emptied_and_becomes_a_gap() {
    let runtime = Arc::new(SimulatedRuntime::new(2));
    let lists = MemoryPool::new(runtime.clone());
    let node = Node::start(MemoryStore::with_runtime(runtime.clone()), &lists, runtime).await;
    tokio::time::sleep(SECOND).await;
    let old = lists.snapshot();
    let before = pop(&lists, 60);
    assert_eq!(before.len(), 60);
    lists.restart(old);
    tokio::time::sleep(2 * SECOND).await;
    let after = pop(&lists, 100);
    assert_eq!(after.len(), 100, "the list was emptied and filled");
    assert!(before.iter().all(|number| !after.contains(number)), "no number repeats");
    let machine = node.stop().await;
    machine.reconcile(None).await.unwrap();
    let gaps = machine.gaps(GapFilter::default(), None, 100).await.unwrap();
    let lost = gaps.iter().filter(|gap| gap.missing.reason == GapReason::PoolInvalidated);
    let lost: u64 = lost.map(|gap| gap.missing.range.count()).sum();
    assert_eq!(lost, 100, "numbers of the old snapshot may have been taken: {gaps:?}");
}
