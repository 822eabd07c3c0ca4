//! The simulator: a machine on a store in memory, with callers, faults and time derived from one seed, so that a
//! failing seed fails again. Must never read a clock, use the system's randomness or a second thread.

mod runtime;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Actor, Machine, Promise, Runtime as _, SeriesSpec};

use crate::history::{Gaps, History, Rules};
use crate::{Fault, MemoryStore};

pub use runtime::SimulatedRuntime;

/// Number of callers.
const CALLERS: u32 = 6;

/// The longest time that the store takes for a grant.
const LATENCY: Duration = Duration::from_millis(5);

/// Calls of each caller.
const CALLS: u32 = 60;

/// Runs a machine from a seed, and returns a log of all answers in the order in which they came.
///
/// # Panics
///
/// If the promise was broken, with the seed and the log.
pub fn simulate(seed: u64, promise: Promise) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(run(seed, promise))
}

async fn run(seed: u64, promise: Promise) -> String {
    let runtime = Arc::new(SimulatedRuntime::new(seed));
    let store = Arc::new(MemoryStore::with_runtime(runtime.clone()).with_latency(LATENCY));
    let spec =
        SeriesSpec { promise, ..SeriesSpec::new("counter".parse().expect("a good name"), "{scope}-{seq}") };
    let machine = Machine::open(store.clone(), vec![spec], runtime.clone()).await.expect("the machine opens");
    let (machine, history) = (Arc::new(machine), History::default());
    let mut callers = tokio::task::JoinSet::new();
    let log = Arc::new(std::sync::Mutex::new(String::new()));
    for number in 0..CALLERS {
        let caller = Caller {
            number,
            runtime: runtime.clone(),
            store: store.clone(),
            machine: machine.clone(),
            history: history.clone(),
            log: log.clone(),
        };
        callers.spawn(caller.run());
    }
    callers.join_all().await;
    machine.close().await;
    let log = std::mem::take(&mut *log.lock().expect("no caller panicked"));
    // A call that failed after its write leaves a gap.
    let violations = history.check(Rules { is_ordered: promise != Promise::Unique, gaps: Gaps::Any });
    assert!(violations.is_empty(), "seed {seed}: {violations:?}\n{log}");
    log
}

/// A caller that takes numbers, waits, and sometimes injects a fault into the store.
struct Caller {
    number: u32,
    runtime: Arc<SimulatedRuntime>,
    store: Arc<MemoryStore>,
    machine: Arc<Machine<MemoryStore>>,
    history: History,
    log: Arc<std::sync::Mutex<String>>,
}

impl Caller {
    async fn run(self) {
        let mut client = self.history.client();
        for _ in 0..CALLS {
            self.runtime.sleep(Duration::from_millis(self.runtime.below(40))).await;
            if self.runtime.below(10) == 0 {
                let fault = if self.runtime.below(2) == 0 { Fault::BeforeWrite } else { Fault::AfterWrite };
                self.store.plan(&[fault]);
            }
            if self.runtime.below(50) == 0 {
                self.machine.evict_idle().await;
            }
            let (name, count) =
                (["a", "b"][usize::from(self.runtime.below(2) == 0)], 1 + self.runtime.below(8));
            let entry = self.machine.series("counter").expect("the series exists");
            let request = client.ask(self.history.scope(name));
            let taken = self
                .machine
                .take(&entry, (&[("scope", name)]).into(), count, Actor::library("a caller"))
                .await;
            let answer = match taken {
                Ok(taken) => {
                    client.answered(request, taken.last() + 1 - count, taken.last());
                    format!("{name} {} to {}", taken.last() + 1 - count, taken.last())
                }
                Err(error) => format!("{name} {error}"),
            };
            let mut log = self.log.lock().expect("no caller panicked");
            let at = self.runtime.elapsed().as_micros();
            writeln!(log, "{at} µs, caller {}: {answer}", self.number).expect("writing to a string");
        }
    }
}
