//! Notices between nodes: a node that has written documents tells the others, so that an idle one delivers them.
//!
//! Invariant: nothing depends on it. A notice is sent after the commit, on a connection of its own, and may get lost;
//! relays also poll. Within a transaction that numbers, NOTIFY would hold a lock of the whole database during its commit.

mod board;
mod link;
mod speak;

use std::sync::{Arc, OnceLock};

use bates_connect::Address;
use bates_core::SeriesName;
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::connect::Settings;
use crate::error::OpenError;
use board::Board;
use link::Link;

pub(crate) struct Notices {
    board: Arc<Board>,
    link: Link,
    running: OnceLock<Running>,
}

/// Ends with the store.
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Notices {
    /// Connects with the first notice or the first task that waits: most commands have neither.
    pub(crate) fn new(address: &Address, settings: Settings, node: Uuid) -> Result<Self, OpenError> {
        let link = Link::new(address, settings)?;
        Ok(Self { board: Arc::new(Board::new(node)), link, running: OnceLock::new() })
    }

    /// Documents of a series, or of any, can be delivered. Never waits.
    pub(crate) fn wrote(&self, series: Option<&SeriesName>) {
        self.start();
        self.board.wrote(series.cloned());
    }

    pub(crate) async fn woken(&self, series: &SeriesName) {
        self.start();
        self.board.woken(series).await;
    }

    pub(crate) fn is_told(&self) -> bool {
        self.board.is_told()
    }

    fn start(&self) {
        self.running.get_or_init(|| {
            let running = tokio::spawn(self.link.clone().run(self.board.clone()));
            Running(running.abort_handle())
        });
    }
}
