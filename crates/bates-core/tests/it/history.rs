//! Under any mixture of takes, evictions, clean stops, crashes and faults no position repeats, and positions
//! of an ordered series ascend.

use std::sync::Arc;

use bates_core::{Dispenser, Promise};
use bates_testkit::history::{Gaps, History, Rules};
use bates_testkit::{Fault, MemoryStore};
use proptest::prelude::*;

use super::{counter, open_node, scope};

#[derive(Clone, Debug)]
enum Step {
    Take { name: &'static str, count: u64 },
    Evict,
    Stop,
    Crash,
    Plan(Fault),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (prop::sample::select(vec!["a", "b"]), 1_u64..90).prop_map(|(name, count)| Step::Take { name, count }),
        2 => Just(Step::Evict),
        1 => Just(Step::Stop),
        1 => Just(Step::Crash),
        2 => prop::sample::select(vec![Fault::BeforeWrite, Fault::AfterWrite]).prop_map(Step::Plan),
    ]
}

async fn check_history(promise: Promise, steps: Vec<Step>) {
    let memory: Arc<MemoryStore> = Arc::default();
    let mut store = open_node(&memory).await;
    let mut dispenser = Dispenser::new(store.clone());
    let history = History::default();
    let mut client = history.client();
    for step in steps {
        match step {
            Step::Take { name, count } => {
                let request = client.ask(history.scope(name));
                let Ok(taken) = dispenser.take(&counter(promise), &scope(name), count).await else {
                    continue;
                };
                assert_eq!(taken.count(), count);
                client.answered_with(request, taken.ranges().map(|range| (range.from(), range.to() - 1)));
            }
            Step::Evict => drop(dispenser.evict_idle().await),
            Step::Plan(fault) => store.plan(&[fault]),
            Step::Stop | Step::Crash => {
                if matches!(step, Step::Stop) {
                    dispenser.close().await;
                }
                store = open_node(&memory).await;
                dispenser = Dispenser::new(store.clone());
            }
        }
        tokio::task::yield_now().await;
    }
    drop(client);
    // A single caller that takes one number after another sees them ascend under every promise.
    assert_eq!(history.check(Rules { is_ordered: true, gaps: Gaps::Any }), []);
}

proptest! {
    #[test]
    fn no_position_repeats_or_descends_whatever_happens(
        steps in prop::collection::vec(step(), 1..60),
        promise in prop::sample::select(Promise::ALL.to_vec()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check_history(promise, steps));
    }
}
