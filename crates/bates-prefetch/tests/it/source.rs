//! A source in memory that leases each position from 1 on once, and records every request.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bates_pattern::{Options, Pattern, Position, Scope};
use bates_prefetch::{Lease, LeaseContent, Positions, Prefetch, Prefetched, Source};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use uuid::Uuid;

#[derive(Default)]
pub(crate) struct State {
    next: u64,
    pub(crate) end: u64,
    /// Leases that have not ended.
    pub(crate) open: BTreeMap<Uuid, Range<u64>>,
    /// Positions that were given back.
    pub(crate) unused: Vec<u64>,
    /// The count of each lease request.
    pub(crate) requests: Vec<u64>,
    under_way: usize,
    pub(crate) under_way_max: usize,
    pub(crate) is_away: bool,
    reports_waiting: usize,
    /// Seconds by which the wall clock was set forward or back.
    pub(crate) clock_offset: i64,
}

#[derive(Clone)]
pub(crate) struct TestSource {
    state: Arc<Mutex<State>>,
    /// Each lease takes a permit.
    pub(crate) answers: Arc<Semaphore>,
    /// Each report takes a permit.
    pub(crate) reports: Arc<Semaphore>,
    scope: Arc<Scope>,
    is_written: bool,
    valid_for: Option<Duration>,
    /// Every n-th position has a number; the rules reject the others.
    every: u64,
}

/// The time limit of a report.
pub(crate) const REPORT_TIME: Duration = Duration::from_secs(7);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Away {
    #[error("the server is away")]
    Away,
    #[error("the scope is exhausted")]
    Exhausted,
}

impl TestSource {
    pub(crate) fn new() -> Self {
        let pattern = Pattern::compile("N-{seq:9}", Options::default()).expect("a pattern");
        let scope = Arc::new(pattern.scope([("", ""); 0], None).expect("a scope"));
        let state = State { next: 1, end: u64::MAX, ..State::default() };
        let all = || Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let (answers, reports, state) = (all(), all(), Arc::new(Mutex::new(state)));
        Self { state, answers, reports, scope, is_written: false, valid_for: None, every: 1 }
    }

    /// Leases rendered numbers at every third position; the rules reject the others.
    pub(crate) fn with_every_third() -> Self {
        Self { every: 3, ..Self::written(None) }
    }

    pub(crate) fn reports_waiting(&self) -> usize {
        self.state(|state| state.reports_waiting)
    }

    /// Leases rendered numbers instead of positions.
    pub(crate) fn written(valid_for: Option<Duration>) -> Self {
        Self { is_written: true, valid_for, ..Self::new() }
    }

    pub(crate) fn prefetch(&self, prefetch: Prefetch) -> Prefetched<Self> {
        Prefetched::new(self.clone(), prefetch, &Handle::current())
    }

    pub(crate) fn state<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().expect("no thread panicked"))
    }

    /// Leased positions that were not given back and whose lease has ended.
    pub(crate) fn used(&self) -> Vec<u64> {
        self.state(|state| {
            let is_open = |position: &u64| state.open.values().any(|range| range.contains(position));
            (1..state.next)
                .filter(|position| !is_open(position) && !state.unused.contains(position))
                .collect()
        })
    }
}

impl Source for TestSource {
    type Error = Away;

    async fn lease(&self, count: u64, used: Vec<Uuid>) -> Result<Lease, Away> {
        self.state(|state| {
            state.requests.push(count);
            state.under_way += 1;
            state.under_way_max = state.under_way_max.max(state.under_way);
        });
        self.answers.acquire().await.expect("the semaphore is never closed").forget();
        let lease = Uuid::new_v4();
        let range = self.state(|state| {
            state.under_way -= 1;
            if state.is_away {
                return Err(Away::Away);
            }
            let range = state.next..(state.next + count * self.every).min(state.end);
            if range.is_empty() {
                return Err(Away::Exhausted);
            }
            for id in used {
                state.open.remove(&id);
            }
            state.next = range.end;
            state.open.insert(lease, range.clone());
            Ok(range)
        })?;
        let content = if self.is_written {
            let ranges = vec![positions(&range)];
            LeaseContent::Numbers(
                range
                    .filter(|value| value % self.every == 0)
                    .map(|value| (position(value), format!("W-{value}").into()))
                    .collect(),
                ranges,
            )
        } else {
            LeaseContent::Ranges(vec![positions(&range)], self.scope.clone())
        };
        Ok(Lease { id: lease, content, valid_for: self.valid_for })
    }

    async fn give_back(&self, lease: Uuid, unused: Vec<Positions>) -> Result<(), Away> {
        if self.state(|state| state.is_away) {
            return Err(Away::Away);
        }
        self.state(|state| state.reports_waiting += 1);
        self.reports.acquire().await.expect("the semaphore is never closed").forget();
        self.state(|state| {
            state.reports_waiting -= 1;
            // A used lease may already have ended with a later request.
            let Some(range) = state.open.remove(&lease) else {
                assert_eq!(unused, [], "a lease ends once");
                return;
            };
            for position in unused.iter().flat_map(|unused| unused.start().value()..=unused.end().value()) {
                assert!(range.contains(&position), "{position} is not in the lease");
                state.unused.push(position);
            }
        });
        Ok(())
    }

    fn report_timeout(&self) -> Duration {
        REPORT_TIME
    }

    fn now(&self) -> SystemTime {
        let offset = self.state(|state| state.clock_offset);
        let shift = Duration::from_secs(offset.unsigned_abs());
        if offset < 0 { SystemTime::UNIX_EPOCH + DAY - shift } else { SystemTime::UNIX_EPOCH + DAY + shift }
    }
}

fn position(value: u64) -> Position {
    Position::new(value).expect("positions start at 1")
}

fn positions(range: &Range<u64>) -> Positions {
    position(range.start)..=position(range.end - 1)
}

/// The wall clock at first. It stands still unless a test sets it.
const DAY: Duration = Duration::from_hours(24);
