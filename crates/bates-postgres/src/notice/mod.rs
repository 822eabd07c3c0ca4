//! Notices between nodes: a node that has written documents notifies the others, so that an idle node delivers them.
//!
//! Invariant: nothing depends on notices. They are sent after the commit, on a separate connection, and may be lost; relays
//! also poll. In the transaction that numbers documents, NOTIFY would lock the whole database during the commit.

mod board;
mod link;
mod send;

use std::sync::{Arc, OnceLock};

use bates_connect::Address;
use bates_core::SeriesName;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::connect::Settings;
use crate::error::OpenError;
use board::Board;
use link::Link;

pub(crate) struct Notices {
    board: Arc<Board>,
    link: Link,
    /// Its one task ends when the store is dropped.
    task: OnceLock<JoinSet<()>>,
}

impl Notices {
    /// Connects at the first notice or the first waiting task: most commands have neither.
    pub(crate) fn new(address: &Address, settings: Settings, node: Uuid) -> Result<Self, OpenError> {
        let link = Link::new(address, settings)?;
        Ok(Self { board: Arc::new(Board::new(node)), link, task: OnceLock::new() })
    }

    /// Announces to other nodes that documents of a series wait for delivery; `None` stands for all series. Never waits.
    pub(crate) fn announce(&self, series: Option<&SeriesName>) {
        self.start();
        self.board.announce(series.cloned());
    }

    /// Waits for a notice about a series.
    pub(crate) async fn wait(&self, series: &SeriesName) {
        self.start();
        self.board.wait(series).await;
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.board.is_listening()
    }

    fn start(&self) {
        self.task.get_or_init(|| JoinSet::from_iter([self.link.clone().run(self.board.clone())]));
    }
}
