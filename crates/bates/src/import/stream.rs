//! One long request: documents go out while numbers come back, so that the server always has enough to share its
//! commits among. Owns that an answer is paired with its line. Must never hold more than some thousand lines.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use bates_api::LineAnswer;
use bates_client::Series;
use tokio::sync::mpsc;

use super::lines::{Document, Documents};
use super::scope_of::ScopeOf;

/// Lines that are on their way: what a server has under way, and what lies in the buffers of a connection.
const LINES_MAX: usize = 16_384;

/// A piece of the request, and how many of them wait to be sent.
const LINES_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 256 * 1024;
const PIECES_MAX: usize = 4;

/// What is sent: documents, where the scope of each comes from, and what the import is known by.
pub(super) struct Outgoing {
    pub(super) documents: Documents,
    pub(super) scope: ScopeOf,
    pub(super) id: String,
}

struct Sent {
    document: Document,
    /// How much of the file was read by then.
    bytes: u64,
}

pub(super) struct Answered<'a> {
    pub(super) document: &'a Document,
    pub(super) answer: LineAnswer,
    pub(super) bytes: u64,
}

/// Sends all documents and hands over each with its answer, in the order of the file.
pub(super) async fn send(
    series: &Series,
    outgoing: Outgoing,
    mut take: impl FnMut(Answered<'_>) -> Result<()>,
) -> Result<()> {
    let (pieces, waiting) = mpsc::channel(PIECES_MAX);
    let (sent, paired) = sync_channel(LINES_MAX);
    let reading = thread::spawn(move || outgoing.read(&pieces, &sent));
    let answered = exchange(series, waiting, &paired, &mut take).await;
    // Whoever reads has nobody to read for any more, and ends.
    drop(paired);
    let read = reading.join().map_err(|_| anyhow!("the file could not be read"))?;
    // What is wrong with the file counts more than that its request broke off.
    read.and(answered)
}

impl Outgoing {
    /// Reads documents into pieces of a request, until nobody wants more.
    fn read(mut self, pieces: &mpsc::Sender<Vec<u8>>, sent: &SyncSender<Sent>) -> Result<()> {
        loop {
            let batch = self.documents.take(LINES_AT_ONCE, BYTES_AT_ONCE)?;
            if batch.is_empty() {
                return Ok(());
            }
            let (mut piece, bytes) = (Vec::new(), self.documents.bytes);
            for document in batch {
                self.scope.write(&mut piece, &document, &format!("{}:{}", self.id, document.line))?;
                if sent.send(Sent { document, bytes }).is_err() {
                    return Ok(());
                }
            }
            if pieces.blocking_send(piece).is_err() {
                return Ok(());
            }
        }
    }
}

async fn exchange(
    series: &Series,
    waiting: mpsc::Receiver<Vec<u8>>,
    paired: &Receiver<Sent>,
    take: &mut impl FnMut(Answered<'_>) -> Result<()>,
) -> Result<()> {
    let broken = "the answer of the server broke off; run the same command again to go on";
    let mut answers = series.assign_lines(waiting).await?;
    while let Some(answer) = answers.next().await.map_err(std::io::Error::other).context(broken)? {
        let Sent { document, bytes } =
            paired.recv().context("the server answered more lines than were sent")?;
        take(Answered { document: &document, answer, bytes })?;
    }
    // Every line that was sent must have an answer.
    match paired.recv() {
        Err(_) => Ok(()),
        Ok(_) => Err(std::io::Error::other(broken).into()),
    }
}
