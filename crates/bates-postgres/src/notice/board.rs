//! The series to send notices about, and the tasks that wait for notices. Knows no connection.

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
    /// The name of this node in its notices: it receives its own notices, too.
    pub(super) node: String,
    /// Series with new documents for which no notice was sent yet; `None` means any series.
    written: Mutex<Series>,
    has_written: Notify,
    /// One entry for each series that this node delivers.
    waiting: Mutex<HashMap<SeriesName, Arc<Notify>>>,
    is_listening: AtomicBool,
}

type Series = BTreeSet<Option<SeriesName>>;

impl Board {
    pub(super) fn new(node: Uuid) -> Self {
        Self {
            node: node.simple().to_string(),
            written: Mutex::default(),
            has_written: Notify::new(),
            waiting: Mutex::default(),
            is_listening: AtomicBool::new(false),
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

    pub(super) fn take(&self) -> UnsentNotices<'_> {
        UnsentNotices { series: mem::take(&mut *self.written.lock()), board: self }
    }

    /// Returns at once if a notice came while no task waited.
    pub(super) async fn woken(&self, series: &SeriesName) {
        let waiting = self.waiting.lock().entry(series.clone()).or_default().clone();
        waiting.notified().await;
    }

    /// Wakes the tasks that a notice concerns. A notice is the name of a node and a series.
    pub(super) fn hear(&self, notice: &str) {
        let Some((_, series)) = notice.split_once(' ').filter(|(node, _)| *node != self.node) else { return };
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
        self.is_listening.store(true, Ordering::Release);
    }

    pub(super) fn cut_off(&self) {
        self.is_listening.store(false, Ordering::Release);
    }

    pub(super) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    fn wake_all(&self) {
        self.waiting.lock().values().for_each(|waiting| waiting.notify_one());
    }
}

/// Series about to be sent. When dropped, they go back to the board, unless they were sent.
pub(super) struct UnsentNotices<'b> {
    series: Series,
    board: &'b Board,
}

impl UnsentNotices<'_> {
    pub(super) fn series(&self) -> Vec<String> {
        let name = |series: &Option<SeriesName>| series.as_ref().map_or(ALL, SeriesName::as_str).to_owned();
        self.series.iter().map(name).collect()
    }

    pub(super) fn sent(mut self) {
        self.series.clear();
    }
}

impl Drop for UnsentNotices<'_> {
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
        assert!(!is_woken(&board, &series) && !board.is_listening());
        board.listens();
        assert!(is_woken(&board, &series) && board.is_listening());
        board.cut_off();
        assert!(!is_woken(&board, &series) && !board.is_listening());
    }
}
