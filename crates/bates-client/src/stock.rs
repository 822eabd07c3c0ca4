//! Numbers that were popped and not handed out. Decides which call may fetch more, and when to skip Redis. Never waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bates_process::ProcessGuard;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ListError;

/// The pause after a failure. It doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The pause after an empty answer: the filler needs some milliseconds.
const EMPTY_PAUSE: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(crate) struct Stock {
    state: Mutex<State>,
    /// Notified at the end of every fetch.
    ended: watch::Sender<()>,
    pub(crate) process: ProcessGuard,
}

#[derive(Default)]
struct State {
    /// Only this process has popped them, so they stay valid when the epoch changes.
    numbers: VecDeque<String>,
    is_fetching: bool,
    breaker: Breaker,
    trouble: Option<Box<str>>,
}

/// What a call does to get numbers from Redis.
pub(crate) enum Turn {
    /// Fetch, and wait for the outcome.
    Fetch(Fetch),
    /// Fetch, and do not wait for the outcome.
    Probe(Fetch),
    /// Wait for the fetch of another call.
    Wait,
    Skip,
}

/// The right to fetch. One call has it at a time, and returns it on drop.
pub(crate) struct Fetch {
    stock: Arc<Stock>,
    outcome: Option<Result<FetchResult, ListError>>,
}

pub(crate) enum FetchResult {
    /// Empty if the list is empty.
    Numbers(Vec<String>),
    Attached,
}

impl Stock {
    /// Invariant: a forked process takes no number, and no lock: a thread of its parent may hold it forever.
    pub(crate) fn is_forked(&self) -> bool {
        self.process.is_forked()
    }

    /// Decides what a call does. As a last resort, it tries Redis and waits for it even after failures.
    pub(crate) fn turn(self: &Arc<Self>, now: Instant, is_last_resort: bool) -> Turn {
        if self.is_forked() {
            return Turn::Skip;
        }
        let mut state = self.state.lock();
        let verdict = if is_last_resort { Verdict::Fetch } else { state.breaker.verdict(now) };
        match verdict {
            Verdict::Skip => return Turn::Skip,
            Verdict::Probe if state.is_fetching => return Turn::Skip,
            Verdict::Fetch if state.is_fetching => return Turn::Wait,
            Verdict::Fetch | Verdict::Probe => state.is_fetching = true,
        }
        let fetch = Fetch { stock: self.clone(), outcome: None };
        if verdict == Verdict::Fetch { Turn::Fetch(fetch) } else { Turn::Probe(fetch) }
    }

    /// A fetch outlasted the deadline of a waiting call: Redis counts as failed until the fetch ends.
    pub(crate) fn mark_late(&self, now: Instant) {
        let mut state = self.state.lock();
        if state.is_fetching && state.breaker.verdict(now) == Verdict::Fetch {
            state.breaker.failed(now);
        }
    }

    pub(crate) fn fetch_ended(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    pub(crate) fn rest(&self) -> Vec<String> {
        if self.is_forked() {
            return Vec::new();
        }
        self.state.lock().numbers.drain(..).collect()
    }

    pub(crate) fn trouble(&self) -> Option<Box<str>> {
        self.state.lock().trouble.clone()
    }
}

impl Fetch {
    pub(crate) fn end(mut self, outcome: Result<FetchResult, ListError>) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.stock.state.lock();
        state.is_fetching = false;
        match self.outcome.take() {
            Some(Ok(FetchResult::Attached)) => state.breaker.succeeded(),
            Some(Ok(FetchResult::Numbers(numbers))) if numbers.is_empty() => {
                state.breaker.found_empty(now);
                state.trouble = Some("its list is empty".into());
            }
            Some(Ok(FetchResult::Numbers(numbers))) => {
                state.breaker.succeeded();
                state.trouble = None;
                state.numbers.extend(numbers);
            }
            Some(Err(error)) => {
                state.breaker.failed(now);
                state.trouble = Some(error.to_string().into());
            }
            None => state.breaker.failed(now),
        }
        drop(state);
        self.stock.ended.send_replace(());
    }
}

/// A call to pop numbers, with those that it has so far. On drop, those not taken go back to the stock.
pub(crate) struct PendingPop<'s> {
    stock: &'s Stock,
    numbers: Vec<String>,
    count: usize,
}

impl<'s> PendingPop<'s> {
    pub(crate) fn new(stock: &'s Stock, count: usize) -> Self {
        Self { stock, numbers: Vec::new(), count }
    }

    pub(crate) fn missing(&self) -> usize {
        self.count.saturating_sub(self.numbers.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Takes missing numbers from the stock; returns whether it had any.
    pub(crate) fn take_from_stock(&mut self) -> bool {
        if self.stock.is_forked() {
            return false;
        }
        let mut state = self.stock.state.lock();
        let taken = self.missing().min(state.numbers.len());
        self.numbers.extend(state.numbers.drain(..taken));
        taken > 0
    }

    pub(crate) fn add(&mut self, numbers: Vec<String>) {
        self.numbers.extend(numbers);
    }

    /// The numbers, without those beyond `count`, which go back to the stock.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let rest = self.numbers.split_off(self.count.min(self.numbers.len()));
        std::mem::replace(&mut self.numbers, rest)
    }
}

impl Drop for PendingPop<'_> {
    fn drop(&mut self) {
        if self.stock.is_forked() {
            return;
        }
        let mut state = self.stock.state.lock();
        for number in self.numbers.drain(..).rev() {
            state.numbers.push_front(number);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fetch,
    /// Redis failed some time ago: a fetch starts, and no call waits for it.
    Probe,
    Skip,
}

/// Decides when Redis is tried. Takes the time from its caller.
#[derive(Debug, Default)]
struct Breaker {
    not_before: Option<Instant>,
    /// The pause after the last failure, if no fetch succeeded since.
    pause: Option<Duration>,
}

impl Breaker {
    fn verdict(&self, now: Instant) -> Verdict {
        match (self.not_before, self.pause) {
            (Some(time), _) if now < time => Verdict::Skip,
            (_, Some(_)) => Verdict::Probe,
            _ => Verdict::Fetch,
        }
    }

    fn succeeded(&mut self) {
        *self = Self::default();
    }

    fn found_empty(&mut self, now: Instant) {
        *self = Self { not_before: Some(now + EMPTY_PAUSE), pause: None };
    }

    fn failed(&mut self, now: Instant) {
        let pause = self.pause.map_or(PAUSE_MIN, |last| (last * 2).min(PAUSE_MAX));
        *self = Self { not_before: Some(now + pause), pause: Some(pause) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin_fetch(stock: &Arc<Stock>, now: Instant) -> Fetch {
        let Turn::Fetch(fetch) = stock.turn(now, false) else { panic!("another call fetches") };
        fetch
    }

    fn stock_of(numbers: &[&str]) -> Arc<Stock> {
        let stock: Arc<Stock> = Arc::default();
        let fetch = begin_fetch(&stock, Instant::now());
        fetch.end(Ok(FetchResult::Numbers(numbers.iter().map(|number| (*number).to_owned()).collect())));
        stock
    }

    #[test]
    fn the_numbers_of_a_dropped_call_are_handed_out_next_and_in_order() {
        let stock = stock_of(&["1", "2", "3", "4"]);
        let mut dropped = PendingPop::new(&stock, 3);
        assert!(dropped.take_from_stock());
        drop(dropped);
        let mut pending = PendingPop::new(&stock, 4);
        pending.take_from_stock();
        assert_eq!(pending.finish(), ["1", "2", "3", "4"]);
    }

    #[test]
    fn extra_numbers_stay_in_the_stock() {
        let stock = stock_of(&[]);
        let mut pending = PendingPop::new(&stock, 1);
        pending.add(vec!["1".to_owned(), "2".to_owned()]);
        assert_eq!(pending.finish(), ["1"]);
        let mut next = PendingPop::new(&stock, 1);
        next.take_from_stock();
        assert_eq!(next.finish(), ["2"]);
    }

    #[test]
    fn no_call_waits_for_a_late_answer_and_its_numbers_are_used_when_it_comes() {
        let stock: Arc<Stock> = Arc::default();
        let now = Instant::now();
        let fetch = begin_fetch(&stock, now);
        stock.mark_late(now);
        assert!(matches!(stock.turn(now, false), Turn::Skip));
        fetch.end(Ok(FetchResult::Numbers(vec!["1".to_owned()])));
        let mut pending = PendingPop::new(&stock, 1);
        assert!(pending.take_from_stock());
        assert!(matches!(stock.turn(now, false), Turn::Fetch(_)), "Redis counts as healthy again");
    }

    #[test]
    fn one_call_fetches_at_a_time_and_a_dropped_fetch_has_failed() {
        let stock: Arc<Stock> = Arc::default();
        let now = Instant::now();
        let fetch = begin_fetch(&stock, now);
        assert!(matches!(stock.turn(now, false), Turn::Wait));
        drop(fetch);
        assert!(matches!(stock.turn(now, false), Turn::Skip));
        assert!(matches!(stock.turn(now, true), Turn::Fetch(_)));
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_end_with_the_first_success() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.verdict(now), Verdict::Fetch);
        for pause_ms in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000] {
            breaker.failed(now);
            let pause = Duration::from_millis(pause_ms);
            assert_eq!(breaker.verdict(now + pause.saturating_sub(Duration::from_nanos(1))), Verdict::Skip);
            now += pause;
            assert_eq!(breaker.verdict(now), Verdict::Probe);
        }
        breaker.succeeded();
        assert_eq!(breaker.verdict(now), Verdict::Fetch);
        breaker.failed(now);
        assert_eq!(breaker.verdict(now + PAUSE_MIN), Verdict::Probe);
    }

    #[test]
    fn an_empty_list_is_tried_again_soon() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        breaker.found_empty(now);
        assert_eq!(breaker.verdict(now), Verdict::Skip);
        assert_eq!(breaker.verdict(now + EMPTY_PAUSE), Verdict::Fetch);
    }
}
