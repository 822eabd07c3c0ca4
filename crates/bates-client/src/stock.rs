//! What was popped and not yet handed out, who may fetch more, and what came of it. Waits for nobody.

use std::collections::VecDeque;
use std::sync::Arc;

use bates_process::ProcessGuard;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::breaker::{Breaker, Verdict};
use crate::error::TapError;

#[derive(Default)]
pub(crate) struct Stock {
    state: Mutex<State>,
    /// Told whenever a fetch ends, however it ends.
    ended: watch::Sender<()>,
    pub(crate) process: ProcessGuard,
}

#[derive(Default)]
struct State {
    /// Each was popped by this process, and by it alone: no epoch takes them away.
    numbers: VecDeque<String>,
    is_under_way: bool,
    breaker: Breaker,
    /// What came of the last fetch, if it brought nothing.
    why: Option<Box<str>>,
}

/// What a call that needs more is to do.
pub(crate) enum Turn {
    Fetch(Fetch),
    /// To fetch, and not to wait for what comes of it.
    Probe(Fetch),
    /// To wait for the one that fetches.
    Wait,
    Leave,
}

/// The right to fetch, which one has at a time. It ends with this.
pub(crate) struct Fetch {
    stock: Arc<Stock>,
    outcome: Option<Result<Fetched, TapError>>,
}

/// What a fetch that did not fail has brought.
pub(crate) enum Fetched {
    /// Numbers of the list; none if it is empty.
    Numbers(Vec<String>),
    Connection,
}

impl Stock {
    /// Whether this process was forked from the one that made it. Invariant: such a process takes nothing, and takes no
    /// lock, which a thread that it does not have may hold.
    pub(crate) fn is_forked(&self) -> bool {
        self.process.is_forked()
    }

    /// Whose turn it is. Where Redis is all that is left, it is asked, however it was before, and waited for.
    pub(crate) fn turn(self: &Arc<Self>, now: Instant, is_last_resort: bool) -> Turn {
        if self.is_forked() {
            return Turn::Leave;
        }
        let mut state = self.state.lock();
        let verdict = if is_last_resort { Verdict::Ask } else { state.breaker.verdict(now) };
        match verdict {
            Verdict::Leave => return Turn::Leave,
            // Somebody else tries, and this one does not wait for it.
            Verdict::Probe if state.is_under_way => return Turn::Leave,
            Verdict::Ask if state.is_under_way => return Turn::Wait,
            Verdict::Ask | Verdict::Probe => state.is_under_way = true,
        }
        let fetch = Fetch { stock: self.clone(), outcome: None };
        if verdict == Verdict::Ask { Turn::Fetch(fetch) } else { Turn::Probe(fetch) }
    }

    /// A fetch did not end within the time of those who wait for it: Redis counts as failed until it does.
    pub(crate) fn is_late(&self, now: Instant) {
        let mut state = self.state.lock();
        if state.is_under_way && state.breaker.verdict(now) == Verdict::Ask {
            state.breaker.failed(now);
        }
    }

    /// Tells when the fetch ends that is under way now, or the one that comes.
    pub(crate) fn watched(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    pub(crate) fn rest(&self) -> Vec<String> {
        if self.is_forked() {
            return Vec::new();
        }
        self.state.lock().numbers.drain(..).collect()
    }

    /// What came of asking Redis last, if that was nothing.
    pub(crate) fn trouble(&self) -> Option<Box<str>> {
        self.state.lock().why.clone()
    }

    pub(crate) fn why(&self) -> Box<str> {
        self.trouble().unwrap_or_else(|| "not asked, or others took what it gave".into())
    }
}

impl Fetch {
    pub(crate) fn end(mut self, outcome: Result<Fetched, TapError>) {
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
                state.why = Some("its list is empty".into());
            }
            Some(Ok(Fetched::Numbers(numbers))) => {
                state.breaker.worked();
                state.why = None;
                state.numbers.extend(numbers);
            }
            Some(Err(error)) => {
                state.breaker.failed(now);
                state.why = Some(error.to_string().into());
            }
            None => state.breaker.failed(now),
        }
        drop(state);
        self.stock.ended.send_replace(());
    }
}

/// What a call has so far. What it does not take with it goes back, if it is given up.
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

    /// Takes what is there of what it lacks. Whether that was any.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stock_of(numbers: &[&str]) -> Arc<Stock> {
        let stock: Arc<Stock> = Arc::default();
        let Turn::Fetch(fetch) = stock.turn(Instant::now(), false) else { panic!("nobody has the turn") };
        fetch.end(Ok(Fetched::Numbers(numbers.iter().map(|number| (*number).to_owned()).collect())));
        stock
    }

    #[test]
    fn what_a_dropped_call_held_is_handed_out_next_and_in_order() {
        let stock = stock_of(&["1", "2", "3", "4"]);
        let mut dropped = Hand::new(&stock, 3);
        assert!(dropped.fill());
        drop(dropped);
        let mut hand = Hand::new(&stock, 4);
        hand.fill();
        assert_eq!(hand.take(), ["1", "2", "3", "4"]);
    }

    #[test]
    fn more_than_was_wanted_stays_at_hand() {
        let stock = stock_of(&[]);
        let mut hand = Hand::new(&stock, 1);
        hand.add(vec!["1".to_owned(), "2".to_owned()]);
        assert_eq!(hand.take(), ["1"]);
        let mut next = Hand::new(&stock, 1);
        next.fill();
        assert_eq!(next.take(), ["2"]);
    }

    #[test]
    fn an_answer_that_comes_late_is_at_hand_and_nobody_waits_for_it_meanwhile() {
        let stock: Arc<Stock> = Arc::default();
        let now = Instant::now();
        let Turn::Fetch(fetch) = stock.turn(now, false) else { panic!("nobody has the turn") };
        stock.is_late(now);
        assert!(matches!(stock.turn(now, false), Turn::Leave));
        fetch.end(Ok(Fetched::Numbers(vec!["1".to_owned()])));
        let mut hand = Hand::new(&stock, 1);
        assert!(hand.fill());
        assert!(matches!(stock.turn(now, false), Turn::Fetch(_)), "it is well again");
    }

    #[test]
    fn one_fetches_at_a_time_and_one_that_vanished_has_failed() {
        let stock: Arc<Stock> = Arc::default();
        let now = Instant::now();
        let Turn::Fetch(fetch) = stock.turn(now, false) else { panic!("nobody has the turn") };
        assert!(matches!(stock.turn(now, false), Turn::Wait));
        drop(fetch);
        assert!(matches!(stock.turn(now, false), Turn::Leave));
        assert!(matches!(stock.turn(now, true), Turn::Fetch(_)));
    }
}
