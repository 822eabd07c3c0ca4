//! Sends documents in one long request while numbers come back, which keeps the commits of the server full. Pairs
//! each answer with its line. Must never hold more than `LINES_MAX` lines without an answer.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use bates_api::LineAnswer;
use bates_client::Series;
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use tokio::sync::mpsc;

use super::lines::{Document, Documents};
use crate::scope;

/// Lines without an answer: those that the server works on, and those in buffers of the connection.
const LINES_MAX: usize = 16_384;

/// Size of a piece of the request, and pieces that wait to be sent.
const LINES_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 256 * 1024;
const PIECES_MAX: usize = 4;

pub(super) struct Upload {
    pub(super) documents: Documents,
    pub(super) scope: ScopeMapping,
    pub(super) id: String,
}

pub(super) struct SentDocument {
    pub(super) document: Document,
    /// Bytes of the file read so far.
    pub(super) bytes: u64,
}

/// Calls `take` with each document and its answer, in the order of the file.
pub(super) async fn send(
    series: &Series,
    upload: Upload,
    mut take: impl FnMut(&SentDocument, LineAnswer) -> Result<()>,
) -> Result<()> {
    let (pieces, waiting) = mpsc::channel(PIECES_MAX);
    let (sent, paired) = sync_channel(LINES_MAX);
    let reading = thread::spawn(move || upload.read(&pieces, &sent));
    let answered = exchange(series, waiting, &paired, &mut take).await;
    // The reading thread ends when its channel closes.
    drop(paired);
    let read = reading.join().map_err(|_| anyhow!("the thread that reads the file panicked"))?;
    // An error in the file is the cause of a broken request.
    read.and(answered)
}

impl Upload {
    fn read(mut self, pieces: &mpsc::Sender<Vec<u8>>, sent: &SyncSender<SentDocument>) -> Result<()> {
        loop {
            let batch = self.documents.take(LINES_AT_ONCE, BYTES_AT_ONCE)?;
            if batch.is_empty() {
                return Ok(());
            }
            let (mut piece, bytes) = (Vec::new(), self.documents.bytes);
            for document in batch {
                self.scope.write(&mut piece, &document, &format!("{}:{}", self.id, document.line))?;
                if sent.send(SentDocument { document, bytes }).is_err() {
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
    paired: &Receiver<SentDocument>,
    take: &mut impl FnMut(&SentDocument, LineAnswer) -> Result<()>,
) -> Result<()> {
    let broken = "the answer of the server ended early; run the same command again to continue";
    let mut answers = series.assign_lines(waiting).await?;
    while let Some(answer) = answers.next().await.map_err(std::io::Error::other).context(broken)? {
        let sent = paired.recv().context("the server answered more lines than were sent")?;
        take(&sent, answer)?;
    }
    // Every line that was sent must have an answer.
    match paired.recv() {
        Err(_) => Ok(()),
        Ok(_) => Err(std::io::Error::other(broken).into()),
    }
}

/// The scope of each document: fixed parameters, and those taken from its fields.
pub(super) struct ScopeMapping {
    fixed: BTreeMap<String, String>,
    fields: Vec<(String, String)>,
    date: Option<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    key: &'a str,
    scope: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    document: &'a RawValue,
}

impl ScopeMapping {
    /// A parameter of the series that is neither fixed nor in `from` is the field of its name.
    pub(super) fn new(
        fixed: &[String],
        from: &[String],
        date: Option<&str>,
        parameters: Vec<String>,
    ) -> Result<Self> {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let fixed: BTreeMap<String, String> = scope::pairs(fixed)?.into_iter().map(owned).collect();
        let mut fields: BTreeMap<String, String> = scope::pairs(from)?.into_iter().map(owned).collect();
        for name in fixed.keys().chain(fields.keys()) {
            if !parameters.contains(name) {
                bail!("the series has no parameter {name:?}; it has {}", parameters.join(", "));
            }
        }
        for name in parameters.into_iter().filter(|name| !fixed.contains_key(name)) {
            fields.entry(name.clone()).or_insert(name);
        }
        Ok(Self { fixed, fields: fields.into_iter().collect(), date: date.map(str::to_owned) })
    }

    fn write(&self, body: &mut Vec<u8>, document: &Document, key: &str) -> Result<()> {
        let Document { text: raw, value, .. } = document;
        let fixed = self.fixed.iter().map(|(name, value)| (&**name, value.clone()));
        // The server refuses a document without the field.
        let fields = self.fields.iter().filter_map(|(name, key)| Some((&**name, field_text(value, key)?)));
        let scope = fixed.chain(fields).collect();
        let date = self.date.as_ref().and_then(|field| field_text(value, field));
        let request = Request { key, scope, date, document: raw };
        serde_json::to_writer(&mut *body, &request).context("cannot encode a document")?;
        body.push(b'\n');
        Ok(())
    }
}

fn field_text(document: &Value, field: &str) -> Option<String> {
    match document.get(field)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        _ => None,
    }
}
