//! Numbers that were popped and not yet handed out; which call may fetch more, and when Redis is not tried. Never waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bates_process::ProcessGuard;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ListError;

/// The pause after a failure: the first one and, after doubling, the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The pause after an empty answer: the filler needs some milliseconds.
const EMPTY: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(crate) struct Stock {
    state: Mutex<State>,
    /// Notified at the end of every fetch.
    ended: watch::Sender<()>,
    pub(crate) process: ProcessGuard,
}

#[derive(Default)]
struct State {
    /// Popped by this process alone, so they stay valid in any epoch.
    numbers: VecDeque<String>,
    is_under_way: bool,
    breaker: Breaker,
    trouble: Option<Box<str>>,
}

pub(crate) enum Turn {
    Fetch(Fetch),
    /// Fetch, and do not wait for the outcome.
    Probe(Fetch),
    /// Wait for the fetch of another call.
    Wait,
    Leave,
}

/// The right to fetch, held by one call at a time and returned on drop.
pub(crate) struct Fetch {
    stock: Arc<Stock>,
    outcome: Option<Result<Fetched, ListError>>,
}

pub(crate) enum Fetched {
    /// None if the list is empty.
    Numbers(Vec<String>),
    Connection,
}

impl Stock {
    /// Invariant: a forked process takes no number and no lock, which a thread of its parent may hold.
    pub(crate) fn is_forked(&self) -> bool {
        self.process.is_forked()
    }

    /// Decides what a call does. The last resort tries Redis and waits for it even after failures.
    pub(crate) fn turn(self: &Arc<Self>, now: Instant, is_last_resort: bool) -> Turn {
        if self.is_forked() {
            return Turn::Leave;
        }
        let mut state = self.state.lock();
        let verdict = if is_last_resort { Verdict::Ask } else { state.breaker.verdict(now) };
        match verdict {
            Verdict::Leave => return Turn::Leave,
            Verdict::Probe if state.is_under_way => return Turn::Leave,
            Verdict::Ask if state.is_under_way => return Turn::Wait,
            Verdict::Ask | Verdict::Probe => state.is_under_way = true,
        }
        let fetch = Fetch { stock: self.clone(), outcome: None };
        if verdict == Verdict::Ask { Turn::Fetch(fetch) } else { Turn::Probe(fetch) }
    }

    /// A fetch outlasted the deadline of a waiting call: Redis counts as failed until the fetch ends.
    pub(crate) fn mark_late(&self, now: Instant) {
        let mut state = self.state.lock();
        if state.is_under_way && state.breaker.verdict(now) == Verdict::Ask {
            state.breaker.failed(now);
        }
    }

    pub(crate) fn watched(&self) -> watch::Receiver<()> {
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

    pub(crate) fn reason(&self) -> Box<str> {
        self.trouble().unwrap_or_else(|| "not tried, or other calls took its numbers".into())
    }
}

impl Fetch {
    pub(crate) fn end(mut self, outcome: Result<Fetched, ListError>) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.stock.state.lock();
        state.is_under_way = false;
        match self.outcome.take() {
            Some(Ok(Fetched::Connection)) => state.breaker.worked(),
            Some(Ok(Fetched::Numbers(numbers))) if numbers.is_empty() => {
                state.breaker.was_empty(now);
                state.trouble = Some("its list is empty".into());
            }
            Some(Ok(Fetched::Numbers(numbers))) => {
                state.breaker.worked();
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

/// The numbers that a call has so far. On drop, those not taken go back to the stock.
pub(crate) struct Hand<'s> {
    stock: &'s Stock,
    numbers: Vec<String>,
    count: usize,
}

impl<'s> Hand<'s> {
    pub(crate) fn new(stock: &'s Stock, count: usize) -> Self {
        Self { stock, numbers: Vec::new(), count }
    }

    pub(crate) fn missing(&self) -> usize {
        self.count.saturating_sub(self.numbers.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Takes missing numbers from the stock; returns whether there were any.
    pub(crate) fn fill(&mut self) -> bool {
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

    pub(crate) fn take(mut self) -> Vec<String> {
        let rest = self.numbers.split_off(self.count.min(self.numbers.len()));
        std::mem::replace(&mut self.numbers, rest)
    }
}

impl Drop for Hand<'_> {
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
    Ask,
    /// Redis failed some time ago: a fetch starts, and no call waits for it.
    Probe,
    Leave,
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
            (Some(time), _) if now < time => Verdict::Leave,
            (_, Some(_)) => Verdict::Probe,
            _ => Verdict::Ask,
        }
    }

    fn worked(&mut self) {
        *self = Self::default();
    }

    fn was_empty(&mut self, now: Instant) {
        *self = Self { not_before: Some(now + EMPTY), pause: None };
    }

    fn failed(&mut self, now: Instant) {
        let pause = self.pause.map_or(PAUSES.0, |last| (last * 2).min(PAUSES.1));
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
        fetch.end(Ok(Fetched::Numbers(numbers.iter().map(|number| (*number).to_owned()).collect())));
        stock
    }

    #[test]
    fn the_numbers_of_a_dropped_call_are_handed_out_next_and_in_order() {
        let stock = stock_of(&["1", "2", "3", "4"]);
        let mut dropped = Hand::new(&stock, 3);
        assert!(dropped.fill());
        drop(dropped);
        let mut hand = Hand::new(&stock, 4);
        hand.fill();
        assert_eq!(hand.take(), ["1", "2", "3", "4"]);
    }

    #[test]
    fn extra_numbers_stay_in_the_stock() {
        let stock = stock_of(&[]);
        let mut hand = Hand::new(&stock, 1);
        hand.add(vec!["1".to_owned(), "2".to_owned()]);
        assert_eq!(hand.take(), ["1"]);
        let mut next = Hand::new(&stock, 1);
        next.fill();
        assert_eq!(next.take(), ["2"]);
    }

    #[test]
    fn no_call_waits_for_a_late_answer_and_its_numbers_are_used_when_it_comes() {
        let stock: Arc<Stock> = Arc::default();
        let now = Instant::now();
        let fetch = begin_fetch(&stock, now);
        stock.mark_late(now);
        assert!(matches!(stock.turn(now, false), Turn::Leave));
        fetch.end(Ok(Fetched::Numbers(vec!["1".to_owned()])));
        let mut hand = Hand::new(&stock, 1);
        assert!(hand.fill());
        assert!(matches!(stock.turn(now, false), Turn::Fetch(_)), "Redis counts as healthy again");
    }

    #[test]
    fn one_call_fetches_at_a_time_and_a_dropped_fetch_has_failed() {
        let stock: Arc<Stock> = Arc::default();
        let now = Instant::now();
        let fetch = begin_fetch(&stock, now);
        assert!(matches!(stock.turn(now, false), Turn::Wait));
        drop(fetch);
        assert!(matches!(stock.turn(now, false), Turn::Leave));
        assert!(matches!(stock.turn(now, true), Turn::Fetch(_)));
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_end_with_the_first_success() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.verdict(now), Verdict::Ask);
        for pause_ms in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000] {
            breaker.failed(now);
            let pause = Duration::from_millis(pause_ms);
            assert_eq!(breaker.verdict(now + pause.saturating_sub(Duration::from_nanos(1))), Verdict::Leave);
            now += pause;
            assert_eq!(breaker.verdict(now), Verdict::Probe);
        }
        breaker.worked();
        assert_eq!(breaker.verdict(now), Verdict::Ask);
        breaker.failed(now);
        assert_eq!(breaker.verdict(now + PAUSES.0), Verdict::Probe);
    }

    #[test]
    fn an_empty_list_is_tried_again_soon() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        breaker.was_empty(now);
        assert_eq!(breaker.verdict(now), Verdict::Leave);
        assert_eq!(breaker.verdict(now + EMPTY), Verdict::Ask);
    }
}
