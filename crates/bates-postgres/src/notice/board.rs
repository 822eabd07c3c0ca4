//! The series about which notices are to be sent, and the tasks that wait for notices. Knows no connection.

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
    /// Series with documents to deliver, about which no notice was sent yet; `None` stands for all series.
    unsent: Mutex<Series>,
    pub(super) has_unsent: Notify,
    /// One entry for each series that this node delivers.
    waiting: Mutex<HashMap<SeriesName, Arc<Notify>>>,
    is_listening: AtomicBool,
}

type Series = BTreeSet<Option<SeriesName>>;

impl Board {
    pub(super) fn new(node: Uuid) -> Self {
        Self {
            node: node.simple().to_string(),
            unsent: Mutex::default(),
            has_unsent: Notify::new(),
            waiting: Mutex::default(),
            is_listening: AtomicBool::new(false),
        }
    }

    pub(super) fn announce(&self, series: Option<SeriesName>) {
        if self.unsent.lock().insert(series) {
            self.has_unsent.notify_one();
        }
    }

    pub(super) fn take_unsent(&self) -> UnsentNotices<'_> {
        UnsentNotices { series: mem::take(&mut *self.unsent.lock()), board: self }
    }

    /// Returns at once if a notice came while no task waited.
    pub(super) async fn wait(&self, series: &SeriesName) {
        let waiting = self.waiting.lock().entry(series.clone()).or_default().clone();
        waiting.notified().await;
    }

    /// Wakes the tasks that wait for this notice, which is the name of the sending node, a space and a series.
    pub(super) fn receive(&self, notice: &str) {
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

    /// Notices arrive from now on. Wakes all tasks, because earlier notices may have been missed.
    pub(super) fn start_listening(&self) {
        self.wake_all();
        self.is_listening.store(true, Ordering::Release);
    }

    pub(super) fn stop_listening(&self) {
        self.is_listening.store(false, Ordering::Release);
    }

    pub(super) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    fn wake_all(&self) {
        self.waiting.lock().values().for_each(|waiting| waiting.notify_one());
    }
}

/// Series about which a notice is being sent. When dropped, they go back to the board, unless marked as sent.
pub(super) struct UnsentNotices<'b> {
    series: Series,
    board: &'b Board,
}

impl UnsentNotices<'_> {
    pub(super) fn series(&self) -> Vec<String> {
        let name = |series: &Option<SeriesName>| series.as_ref().map_or(ALL, SeriesName::as_str).to_owned();
        self.series.iter().map(name).collect()
    }

    pub(super) fn mark_sent(mut self) {
        self.series.clear();
    }
}

impl Drop for UnsentNotices<'_> {
    fn drop(&mut self) {
        for series in mem::take(&mut self.series) {
            self.board.announce(series);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Whether a waiter for the series would be woken now.
    fn is_woken(board: &Board, series: &SeriesName) -> bool {
        let woken = std::pin::pin!(board.wait(series));
        woken.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn a_notice_of_another_node_wakes_the_waiter_of_its_series_once_and_an_own_notice_none() {
        let board = Board::new(Uuid::nil());
        let [one, other] = ["one", "other"].map(|name| name.parse::<SeriesName>().unwrap());
        assert!(!is_woken(&board, &one) && !is_woken(&board, &other));
        board.receive(&format!("{} one", board.node));
        for nonsense in ["", "one", "x", "x unknown", "x No Name", "x "] {
            board.receive(nonsense);
        }
        assert!(!is_woken(&board, &one) && !is_woken(&board, &other));
        board.receive("x one");
        board.receive("y one");
        assert!(is_woken(&board, &one) && !is_woken(&board, &one) && !is_woken(&board, &other));
        board.receive("x *");
        assert!(is_woken(&board, &one) && is_woken(&board, &other));
        assert_eq!(board.waiting.lock().len(), 2, "notices of unknown series do not add entries");
    }

    #[test]
    fn a_listener_that_reconnects_assumes_missed_notices() {
        let (board, series) = (Board::new(Uuid::nil()), "one".parse().unwrap());
        assert!(!is_woken(&board, &series) && !board.is_listening());
        board.start_listening();
        assert!(is_woken(&board, &series) && board.is_listening());
        board.stop_listening();
        assert!(!is_woken(&board, &series) && !board.is_listening());
    }
}
