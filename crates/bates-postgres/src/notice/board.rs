//! The series to notify of, and the tasks that wait for notices. Knows no connection.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bates_core::SeriesName;
use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

/// Stands for all series. No series has this name.
pub(super) const ALL: &str = "*";

pub(super) struct Board {
    /// A node hears its own notices, too, and knows them by this.
    pub(super) node: String,
    /// Series with documents that no notice was sent of; `None` is any series.
    written: Mutex<Series>,
    has_written: Notify,
    /// One for each series that this node delivers.
    waiting: Mutex<HashMap<SeriesName, Arc<Notify>>>,
    is_told: AtomicBool,
}

type Series = BTreeSet<Option<SeriesName>>;

impl Board {
    pub(super) fn new(node: Uuid) -> Self {
        Self {
            node: node.simple().to_string(),
            written: Mutex::default(),
            has_written: Notify::new(),
            waiting: Mutex::default(),
            is_told: AtomicBool::new(false),
        }
    }

    pub(super) fn wrote(&self, series: Option<SeriesName>) {
        if self.written.lock().insert(series) {
            self.has_written.notify_one();
        }
    }

    pub(super) async fn has_written(&self) {
        self.has_written.notified().await;
    }

    pub(super) fn take(&self) -> Taken<'_> {
        Taken { series: mem::take(&mut *self.written.lock()), board: self }
    }

    /// Returns at once if a notice came while no task waited.
    pub(super) async fn woken(&self, series: &SeriesName) {
        let waiting = self.waiting.lock().entry(series.clone()).or_default().clone();
        waiting.notified().await;
    }

    /// A notice is a node and a series.
    pub(super) fn hear(&self, told: &str) {
        let Some((_, series)) = told.split_once(' ').filter(|(node, _)| *node != self.node) else { return };
        if series == ALL {
            return self.wake_all();
        }
        if let Ok(name) = series.parse::<SeriesName>()
            && let Some(waiting) = self.waiting.lock().get(&name)
        {
            waiting.notify_one();
        }
    }

    /// Notices arrive from now on; earlier ones may have been missed.
    pub(super) fn listens(&self) {
        self.wake_all();
        self.is_told.store(true, Ordering::Release);
    }

    pub(super) fn cut_off(&self) {
        self.is_told.store(false, Ordering::Release);
    }

    pub(super) fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Acquire)
    }

    fn wake_all(&self) {
        self.waiting.lock().values().for_each(|waiting| waiting.notify_one());
    }
}

/// Series about to be sent. They go back when dropped, unless they were told.
pub(super) struct Taken<'b> {
    series: Series,
    board: &'b Board,
}

impl Taken<'_> {
    pub(super) fn series(&self) -> Vec<String> {
        let name = |series: &Option<SeriesName>| series.as_ref().map_or(ALL, SeriesName::as_str).to_owned();
        self.series.iter().map(name).collect()
    }

    pub(super) fn told(mut self) {
        self.series.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for series in mem::take(&mut self.series) {
            self.board.wrote(series);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Whether a waiter for the series would be woken now.
    fn is_woken(board: &Board, series: &SeriesName) -> bool {
        let woken = std::pin::pin!(board.woken(series));
        woken.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn a_notice_of_another_node_wakes_the_waiter_of_its_series_once_and_an_own_notice_none() {
        let board = Board::new(Uuid::nil());
        let [one, other] = ["one", "other"].map(|name| name.parse::<SeriesName>().unwrap());
        assert!(!is_woken(&board, &one) && !is_woken(&board, &other));
        board.hear(&format!("{} one", board.node));
        for nonsense in ["", "one", "x", "x unknown", "x No Name", "x "] {
            board.hear(nonsense);
        }
        assert!(!is_woken(&board, &one) && !is_woken(&board, &other));
        board.hear("x one");
        board.hear("y one");
        assert!(is_woken(&board, &one) && !is_woken(&board, &one) && !is_woken(&board, &other));
        board.hear("x *");
        assert!(is_woken(&board, &one) && is_woken(&board, &other));
        assert_eq!(board.waiting.lock().len(), 2, "notices of unknown series do not add entries");
    }

    #[test]
    fn a_listener_that_reconnects_assumes_missed_notices() {
        let (board, series) = (Board::new(Uuid::nil()), "one".parse().unwrap());
        assert!(!is_woken(&board, &series) && !board.is_told());
        board.listens();
        assert!(is_woken(&board, &series) && board.is_told());
        board.cut_off();
        assert!(!is_woken(&board, &series) && !board.is_told());
    }
}
