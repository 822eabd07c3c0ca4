//! One long request: documents go out while numbers come back, so that the server always has enough to share its
//! commits among. Owns that an answer is paired with its line. Must never hold more than some thousand lines.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context as _, anyhow};
use bates_api::LineAnswer;
use bates_client::Series;
use tokio::sync::mpsc;

use super::lines::{Document, Documents};
use super::scope_of::ScopeOf;

/// Lines that are on their way: what a server has under way, and what lies in the buffers of a connection.
const LINES_MAX: usize = 16_384;

/// Documents that go into one piece of the request.
const LINES_AT_ONCE: usize = 64;

/// Bytes of them.
const BYTES_AT_ONCE: usize = 256 * 1024;

/// Pieces that wait to be sent.
const PIECES_MAX: usize = 4;

/// A document, and where in the file it is.
type Sent = (u64, Document);

/// A document and its answer.
pub(super) struct Answered<'a> {
    pub(super) line: u64,
    pub(super) document: &'a Document,
    pub(super) answer: LineAnswer,
    /// How much of the file was read by now.
    pub(super) bytes: u64,
}

/// Sends all documents and hands over each with its answer, in the order of the file.
pub(super) async fn send(
    series: &Series,
    documents: Documents,
    (scope, id): (ScopeOf, String),
    mut take: impl FnMut(Answered<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (pieces, outgoing) = mpsc::channel(PIECES_MAX);
    let (sent, paired) = sync_channel(LINES_MAX);
    let reading = thread::spawn(move || read(documents, &scope, &id, &pieces, &sent));
    let answered = exchange(series, outgoing, &paired, &mut take).await;
    // Whoever reads has nobody to read for any more, and ends.
    drop(paired);
    let read = reading.join().map_err(|_| anyhow!("the file could not be read"))?;
    // What is wrong with the file counts more than that its request broke off.
    read.and(answered)
}

/// Reads documents into pieces of a request, until nobody wants more.
fn read(
    mut documents: Documents,
    scope: &ScopeOf,
    id: &str,
    pieces: &mpsc::Sender<Vec<u8>>,
    sent: &SyncSender<(Sent, u64)>,
) -> anyhow::Result<()> {
    loop {
        let batch = documents.take(LINES_AT_ONCE, BYTES_AT_ONCE)?;
        if batch.is_empty() {
            return Ok(());
        }
        let (mut piece, bytes) = (Vec::new(), documents.bytes());
        for (line, document) in batch {
            scope.write(&mut piece, &document, &format!("{id}:{line}"))?;
            if sent.send(((line, document), bytes)).is_err() {
                return Ok(());
            }
        }
        if pieces.blocking_send(piece).is_err() {
            return Ok(());
        }
    }
}

async fn exchange(
    series: &Series,
    outgoing: mpsc::Receiver<Vec<u8>>,
    paired: &Receiver<(Sent, u64)>,
    take: &mut impl FnMut(Answered<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let broken = "the answer of the server broke off; run the same command again to go on";
    let mut answers = series.assign_lines(outgoing).await?;
    while let Some(answer) = answers.next().await.map_err(std::io::Error::other).context(broken)? {
        let ((line, document), bytes) =
            paired.recv().context("the server answered more lines than were sent")?;
        take(Answered { line, document: &document, answer, bytes })?;
    }
    // Every line that was sent must have an answer.
    match paired.recv() {
        Err(_) => Ok(()),
        Ok(_) => Err(std::io::Error::other(broken).into()),
    }
}
