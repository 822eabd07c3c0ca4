//! Numbers a stream of documents, one per line, and answers with a stream of numbers in the same order. Must never hold
//! more than a few thousand lines and some megabytes, however long the stream is.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bates_api::{DocumentRequest, LineAnswer};
use bates_core::{ErrorCode, SeriesEntry, Store};
use bytes::BytesMut;
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::assign::{DOCUMENT_BYTES_MAX, KeyedCaller, to_api_assignment};
use crate::http::problem::{Problem, Result};
use crate::http::request;
use crate::http::routes::Context;

/// Lines of one stream that are numbered concurrently and share commits.
const STREAM_LINES_MAX: usize = 2_048;
/// Lines of all streams that are numbered concurrently. Fewer than the callers that may wait for the store, so that
/// streams do not crowd out single documents.
pub(crate) const SERVER_LINES_MAX: usize = 4_096;
/// Bytes of the lines of one stream that are being numbered.
const STREAM_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Lines of one stream that are being numbered, or whose answers the client has not read yet.
const UNREAD_LINES_MAX: usize = 2 * STREAM_LINES_MAX;
/// Answers that are joined into one chunk of the response.
const CHUNK_ANSWERS_MAX: usize = 512;
/// Leaves room for `:` and the line number.
const STREAM_KEY_BYTES_MAX: usize = 200;

pub(super) fn respond<S: Store>(
    context: Context<S>,
    entry: Arc<SeriesEntry>,
    caller: KeyedCaller,
    body: Body,
) -> Result<Response> {
    if let Some(key) = caller.key.as_ref().filter(|key| key.len() > STREAM_KEY_BYTES_MAX) {
        let (length, max) = (key.len(), STREAM_KEY_BYTES_MAX);
        let detail = format!("the header Idempotency-Key has {length} characters; for lines at most {max}");
        return Err(Problem::new(ErrorCode::BAD_ARGUMENTS, detail));
    }
    let lines = read_lines(body.into_data_stream(), context.body_timeout, context.line_permits.clone());
    let caller = Arc::new(caller);
    let answers = lines.map(move |line| {
        let (context, entry, caller) = (context.clone(), entry.clone(), caller.clone());
        async move {
            let Line { number, text, unread_permit, numbering_permits } = line?;
            let answer = number_line(&context, &entry, &caller, number, text).await;
            drop(numbering_permits);
            Ok(Answer { line: answer, _unread_permit: unread_permit })
        }
    });
    let answers = run_in_task(answers.buffered(STREAM_LINES_MAX)).ready_chunks(CHUNK_ANSWERS_MAX);
    let chunks = answers.flat_map(|answers| stream::iter(join_answers(answers)));
    let content_type = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((content_type, Body::from_stream(chunks)).into_response())
}

/// Runs the stream in its own task, so that a client that stops reading does not stall calls to the store. The channel
/// is unbounded, but never holds more than [`UNREAD_LINES_MAX`] answers.
fn run_in_task(
    answers: impl Stream<Item = io::Result<Answer>> + Send + 'static,
) -> impl Stream<Item = io::Result<Answer>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut answers = pin!(answers);
        loop {
            let answer = tokio::select! {
                answer = answers.next() => answer,
                () = sender.closed() => return,
            };
            let Some(answer) = answer else { return };
            // A closed channel is noticed above.
            let _ = sender.send(answer);
        }
    });
    stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|answer| (answer, receiver)) })
}

struct Answer {
    line: Vec<u8>,
    /// Released when the answer is sent.
    _unread_permit: OwnedSemaphorePermit,
}

async fn number_line<S: Store>(
    context: &Context<S>,
    entry: &SeriesEntry,
    KeyedCaller { permit, key }: &KeyedCaller,
    number: u64,
    text: Result<Bytes>,
) -> Vec<u8> {
    let assignment = async {
        let mut request: DocumentRequest = request::parse_json(&text?)?;
        // A stream may last longer than the secret of its caller.
        permit.check_valid()?;
        let key = request.key.take().or_else(|| key.as_ref().map(|key| format!("{key}:{number}")));
        let caller = KeyedCaller { permit: permit.clone(), key };
        caller.assign(&context.machine, entry, &request).await
    };
    let answer = match assignment.await {
        Ok(assignment) => LineAnswer::Assignment(to_api_assignment(&assignment)),
        Err(Problem { body: error, .. }) => LineAnswer::Refusal { line: number, error },
    };
    let mut line = serde_json::to_vec(&answer).expect("all keys of an answer are strings");
    line.push(b'\n');
    line
}

/// If the request breaks off, the complete lines before it are answered, and then the response breaks off as well.
fn join_answers(answers: Vec<io::Result<Answer>>) -> Vec<io::Result<Bytes>> {
    let mut joined = Vec::new();
    for answer in answers {
        match answer {
            Ok(answer) => joined.extend(answer.line),
            Err(error) => return vec![Ok(joined.into()), Err(error)],
        }
    }
    vec![Ok(joined.into())]
}

struct Line {
    /// Starts at 1.
    number: u64,
    text: Result<Bytes>,
    /// Held until the answer is sent.
    unread_permit: OwnedSemaphorePermit,
    /// Held until the line is numbered.
    numbering_permits: [OwnedSemaphorePermit; 2],
}

struct LineReader {
    body: BodyDataStream,
    timeout: Duration,
    byte_permits: Arc<Semaphore>,
    unread_permits: Arc<Semaphore>,
    line_permits: Arc<Semaphore>,
    buffer: BytesMut,
    /// The first bytes of the buffer, which have no line break.
    searched: usize,
    number: u64,
    /// Whether the rest of a line that is too long is being skipped.
    is_too_long: bool,
    is_over: bool,
}

/// The lines of a body, without empty ones.
fn read_lines(
    body: BodyDataStream,
    timeout: Duration,
    line_permits: Arc<Semaphore>,
) -> impl Stream<Item = io::Result<Line>> {
    let reader = LineReader {
        body,
        timeout,
        byte_permits: Arc::new(Semaphore::new(STREAM_BYTES_MAX)),
        unread_permits: Arc::new(Semaphore::new(UNREAD_LINES_MAX)),
        line_permits,
        buffer: BytesMut::new(),
        searched: 0,
        number: 0,
        is_too_long: false,
        is_over: false,
    };
    stream::unfold(reader, |mut reader| async {
        let line = reader.next().await.transpose()?;
        reader.is_over |= line.is_err();
        Some((line, reader))
    })
}

async fn acquire(permits: &Arc<Semaphore>, count: u32) -> io::Result<OwnedSemaphorePermit> {
    permits.clone().acquire_many_owned(count).await.map_err(io::Error::other)
}

impl LineReader {
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take_line() {
                self.number += 1;
                if line.as_ref().is_ok_and(|line| line.trim_ascii().is_empty()) {
                    continue;
                }
                let bytes = line.as_ref().map_or(1, Bytes::len).min(STREAM_BYTES_MAX);
                let byte_permit = acquire(&self.byte_permits, u32::try_from(bytes).unwrap_or(1)).await?;
                let unread_permit = acquire(&self.unread_permits, 1).await?;
                let numbering_permits = [byte_permit, acquire(&self.line_permits, 1).await?];
                return Ok(Some(Line { number: self.number, text: line, unread_permit, numbering_permits }));
            }
            if self.is_over {
                return Ok(None);
            }
            self.read().await?;
        }
    }

    fn take_line(&mut self) -> Option<Result<Bytes>> {
        let offset = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = offset.map(|offset| self.searched + offset);
        let line = match end {
            Some(end) => {
                let mut line = self.buffer.split_to(end + 1);
                line.truncate(end);
                line
            }
            // The last line may have no line break.
            None if self.is_over && (!self.buffer.is_empty() || self.is_too_long) => self.buffer.split(),
            None => {
                self.searched = self.buffer.len();
                if self.searched > DOCUMENT_BYTES_MAX {
                    (self.searched, self.is_too_long) = (0, true);
                    self.buffer.clear();
                }
                return None;
            }
        };
        self.searched = 0;
        let is_too_long = std::mem::take(&mut self.is_too_long) || line.len() > DOCUMENT_BYTES_MAX;
        if is_too_long {
            let detail = format!("the line has more than {DOCUMENT_BYTES_MAX} bytes");
            return Some(Err(Problem::new(ErrorCode::TOO_LARGE, detail)));
        }
        Some(Ok(line.freeze()))
    }

    async fn read(&mut self) -> io::Result<()> {
        match timeout(self.timeout, self.body.next()).await {
            Ok(Some(Ok(bytes))) => self.buffer.extend_from_slice(&bytes),
            Ok(Some(Err(error))) => return Err(io::Error::other(error)),
            Ok(None) => self.is_over = true,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
        Ok(())
    }
}
