//! A source that counts: positions from 1 on, each given once.

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
pub(crate) struct Books {
    next: u64,
    pub(crate) end: u64,
    /// Leases that have not ended.
    pub(crate) open: BTreeMap<Uuid, Range<u64>>,
    /// Positions that came back.
    pub(crate) unused: Vec<u64>,
    pub(crate) asked: Vec<u64>,
    under_way: usize,
    pub(crate) under_way_max: usize,
    pub(crate) is_away: bool,
    reports_waiting: usize,
    /// How far the wall clock was set forward or back, in seconds.
    pub(crate) clock_offset: i64,
}

#[derive(Clone)]
pub(crate) struct Counting {
    pub(crate) books: Arc<Mutex<Books>>,
    /// A lease needs one of them.
    pub(crate) answers: Arc<Semaphore>,
    /// A report needs one of them.
    pub(crate) reports: Arc<Semaphore>,
    scope: Arc<Scope>,
    is_written: bool,
    good_for: Option<Duration>,
    /// Every n-th position is a written number.
    every: u64,
}

/// How long a report may take.
pub(crate) const REPORT_TIME: Duration = Duration::from_secs(7);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Away {
    #[error("the server is away")]
    Away,
    #[error("the scope is exhausted")]
    Exhausted,
}

impl Counting {
    pub(crate) fn new() -> Self {
        let pattern = Pattern::compile("N-{seq:9}", Options::default()).expect("a pattern");
        let scope = Arc::new(pattern.scope([("", ""); 0], None).expect("a scope"));
        let books = Books { next: 1, end: u64::MAX, ..Books::default() };
        let all = || Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let (answers, reports, books) = (all(), all(), Arc::new(Mutex::new(books)));
        Self { books, answers, reports, scope, is_written: false, good_for: None, every: 1 }
    }

    /// Written numbers at every third position; the rules reject the others.
    pub(crate) fn with_every_third() -> Self {
        Self { every: 3, ..Self::written(None) }
    }

    pub(crate) fn reports_waiting(&self) -> usize {
        self.books(|books| books.reports_waiting)
    }

    pub(crate) fn written(good_for: Option<Duration>) -> Self {
        Self { is_written: true, good_for, ..Self::new() }
    }

    pub(crate) fn prefetch(&self, prefetch: Prefetch) -> Prefetched<Self> {
        Prefetched::new(self.clone(), prefetch, &Handle::current())
    }

    pub(crate) fn books<T>(&self, look: impl FnOnce(&mut Books) -> T) -> T {
        look(&mut self.books.lock().expect("nobody panicked"))
    }

    /// What was given, and neither came back nor is with somebody.
    pub(crate) fn used(&self) -> Vec<u64> {
        self.books(|books| {
            let is_open = |position: &u64| books.open.values().any(|range| range.contains(position));
            (1..books.next)
                .filter(|position| !is_open(position) && !books.unused.contains(position))
                .collect()
        })
    }
}

impl Source for Counting {
    type Error = Away;

    async fn lease(&self, count: u64, used: Vec<Uuid>) -> Result<Lease, Away> {
        self.books(|books| {
            books.asked.push(count);
            books.under_way += 1;
            books.under_way_max = books.under_way_max.max(books.under_way);
        });
        self.answers.acquire().await.expect("it is never closed").forget();
        let lease = Uuid::new_v4();
        let range = self.books(|books| {
            books.under_way -= 1;
            if books.is_away {
                return Err(Away::Away);
            }
            let range = books.next..(books.next + count * self.every).min(books.end);
            if range.is_empty() {
                return Err(Away::Exhausted);
            }
            for id in used {
                books.open.remove(&id);
            }
            books.next = range.end;
            books.open.insert(lease, range.clone());
            Ok(range)
        })?;
        let numbers = if self.is_written {
            let whole = vec![positions(&range)];
            LeaseContent::Numbers(
                range
                    .filter(|value| value % self.every == 0)
                    .map(|value| (position(value), format!("W-{value}").into()))
                    .collect(),
                whole,
            )
        } else {
            LeaseContent::Ranges(vec![positions(&range)], self.scope.clone())
        };
        Ok(Lease { id: lease, content: numbers, valid_for: self.good_for })
    }

    async fn give_back(&self, lease: Uuid, unused: Vec<Positions>) -> Result<(), Away> {
        if self.books(|books| books.is_away) {
            return Err(Away::Away);
        }
        self.books(|books| books.reports_waiting += 1);
        self.reports.acquire().await.expect("it is never closed").forget();
        self.books(|books| {
            books.reports_waiting -= 1;
            // One that was used may have ended with a lease that was under way.
            let Some(range) = books.open.remove(&lease) else {
                assert_eq!(unused, [], "a lease ends once");
                return;
            };
            for position in unused.iter().flat_map(|unused| unused.start().value()..=unused.end().value()) {
                assert!(range.contains(&position), "{position} is not of the lease");
                books.unused.push(position);
            }
        });
        Ok(())
    }

    fn report_timeout(&self) -> Duration {
        REPORT_TIME
    }

    fn now(&self) -> SystemTime {
        let offset = self.books(|books| books.clock_offset);
        let set = Duration::from_secs(offset.unsigned_abs());
        if offset < 0 { SystemTime::UNIX_EPOCH + DAY - set } else { SystemTime::UNIX_EPOCH + DAY + set }
    }
}

fn position(value: u64) -> Position {
    Position::new(value).expect("it counts from 1")
}

fn positions(range: &Range<u64>) -> Positions {
    position(range.start)..=position(range.end - 1)
}

/// What the wall clock says at first. It stands still unless it is set.
const DAY: Duration = Duration::from_hours(24);
