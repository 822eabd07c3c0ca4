//! A stream of documents in, a stream of numbers out, in order. Must never hold more than some lines and some
//! megabytes, however long the stream is.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bates_api::{DocumentRequest, LineAnswer};
use bates_core::{Code, Entry, Store};
use bytes::BytesMut;
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::assign::{DOCUMENT_BYTES_MAX, Sender, spell_assignment};
use crate::http::ask;
use crate::http::problem::Problem;
use crate::http::routes::Context;

/// Lines of one stream that are numbered together, and share commits.
const LINES_AT_ONCE: usize = 2_048;
/// Lines of all streams that are numbered together. Fewer than callers may wait for the store, so that streams do not
/// crowd out single documents.
pub(crate) const LINES_OF_ALL: usize = 4_096;
/// Of lines that are being numbered.
const BYTES_AT_ONCE: usize = 16 * 1024 * 1024;
/// Lines that are being numbered, or whose answers are not read yet.
const SLOTS: usize = 2 * LINES_AT_ONCE;
const ANSWERS_AT_ONCE: usize = 512;

pub(super) fn answer<S: Store>(
    context: Context<S>,
    entry: Arc<Entry>,
    sender: Sender,
    body: Body,
) -> Result<Response, Problem> {
    if sender.key.as_ref().is_some_and(|key| key.len() > 200) {
        return Err(Problem::new(Code::BAD_ARGUMENTS, "the key of a stream has at most 200 characters"));
    }
    let lines = lines(body.into_data_stream(), context.body_timeout, context.turns.clone());
    let sender = Arc::new(sender);
    let answers = lines.map(move |line| {
        let (context, entry, sender) = (context.clone(), entry.clone(), sender.clone());
        async move {
            let Line { number, text, slot, held } = line?;
            let answer = one(&context, &entry, &sender, number, text).await;
            drop(held);
            Ok(Answer { line: answer, _slot: slot })
        }
    });
    let answers = driven(answers.buffered(LINES_AT_ONCE)).ready_chunks(ANSWERS_AT_ONCE);
    let answers = answers.flat_map(|answers| stream::iter(joined(answers)));
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(answers)).into_response())
}

/// The same answers from a task of their own: a caller that stops reading does not hold up calls to the store. The
/// channel never holds more answers than there are slots.
fn driven(
    answers: impl Stream<Item = io::Result<Answer>> + Send + 'static,
) -> impl Stream<Item = io::Result<Answer>> {
    let (told, waiting) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut answers = pin!(answers);
        loop {
            let answer = tokio::select! {
                answer = answers.next() => answer,
                () = told.closed() => return,
            };
            let Some(answer) = answer else { return };
            // A closed channel is noticed above.
            let _ = told.send(answer);
        }
    });
    stream::unfold(waiting, |mut waiting| async { waiting.recv().await.map(|answer| (answer, waiting)) })
}

/// Holds its slot until it is read.
struct Answer {
    line: Vec<u8>,
    _slot: OwnedSemaphorePermit,
}

async fn one<S: Store>(
    context: &Context<S>,
    entry: &Entry,
    Sender { caller, key }: &Sender,
    number: u64,
    text: Result<Bytes, Problem>,
) -> Vec<u8> {
    let assigned = async {
        let mut request: DocumentRequest = ask::json(&text?)?;
        let key = request.key.take().or_else(|| key.as_ref().map(|key| format!("{key}:{number}")));
        let sender = Sender { caller: caller.clone(), key };
        sender.number(&context.machine, entry, &request).await
    };
    let answer = match assigned.await {
        Ok(assigned) => LineAnswer::Assignment(spell_assignment(&assigned)),
        Err(Problem(error)) => LineAnswer::Refusal { line: number, error },
    };
    let mut line = serde_json::to_vec(&answer).expect("an answer has no keys that are not texts");
    line.push(b'\n');
    line
}

/// Lines before a break of the stream are answered; then the answer breaks off too.
fn joined(answers: Vec<io::Result<Answer>>) -> Vec<io::Result<Bytes>> {
    let mut joined = Vec::new();
    for answer in answers {
        match answer {
            Ok(answer) => joined.extend(answer.line),
            Err(error) => return vec![Ok(joined.into()), Err(error)],
        }
    }
    vec![Ok(joined.into())]
}

/// A line, counted from 1. It holds its room and its turn until it is numbered.
struct Line {
    number: u64,
    text: Result<Bytes, Problem>,
    slot: OwnedSemaphorePermit,
    held: [OwnedSemaphorePermit; 2],
}

struct Reading {
    body: BodyDataStream,
    patience: Duration,
    room: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    buffer: BytesMut,
    /// The buffer has no line break up to here.
    seen: usize,
    number: u64,
    /// Whether the rest of a long line is being skipped.
    is_too_long: bool,
    is_over: bool,
}

/// Without empty lines.
fn lines(
    body: BodyDataStream,
    patience: Duration,
    turns: Arc<Semaphore>,
) -> impl Stream<Item = io::Result<Line>> {
    let reading = Reading {
        body,
        patience,
        room: Arc::new(Semaphore::new(BYTES_AT_ONCE)),
        slots: Arc::new(Semaphore::new(SLOTS)),
        turns,
        buffer: BytesMut::new(),
        seen: 0,
        number: 0,
        is_too_long: false,
        is_over: false,
    };
    stream::unfold(reading, |mut reading| async {
        let line = reading.next().await.transpose()?;
        reading.is_over |= line.is_err();
        Some((line, reading))
    })
}

impl Reading {
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.cut() {
                self.number += 1;
                if line.as_ref().is_ok_and(|line| line.trim_ascii().is_empty()) {
                    continue;
                }
                let bytes = line.as_ref().map_or(1, Bytes::len).min(BYTES_AT_ONCE);
                let room = self.room.clone().acquire_many_owned(u32::try_from(bytes).unwrap_or(1));
                let room = room.await.map_err(io::Error::other)?;
                let slot = self.slots.clone().acquire_owned().await.map_err(io::Error::other)?;
                let turn = self.turns.clone().acquire_owned().await.map_err(io::Error::other)?;
                return Ok(Some(Line { number: self.number, text: line, slot, held: [room, turn] }));
            }
            if self.is_over {
                return Ok(None);
            }
            self.read().await?;
        }
    }

    fn cut(&mut self) -> Option<Result<Bytes, Problem>> {
        let end = self.buffer[self.seen..].iter().position(|byte| *byte == b'\n').map(|at| self.seen + at);
        let line = match end {
            Some(end) => {
                let mut line = self.buffer.split_to(end + 1);
                line.truncate(end);
                line
            }
            // The last line may have no break.
            None if self.is_over && (!self.buffer.is_empty() || self.is_too_long) => self.buffer.split(),
            None => {
                self.seen = self.buffer.len();
                if self.seen > DOCUMENT_BYTES_MAX {
                    (self.seen, self.is_too_long) = (0, true);
                    self.buffer.clear();
                }
                return None;
            }
        };
        self.seen = 0;
        let is_too_long = std::mem::take(&mut self.is_too_long) || line.len() > DOCUMENT_BYTES_MAX;
        let too_long = || format!("the line has more than {DOCUMENT_BYTES_MAX} bytes");
        Some(if is_too_long { Err(Problem::new(Code::TOO_LARGE, too_long())) } else { Ok(line.freeze()) })
    }

    async fn read(&mut self) -> io::Result<()> {
        match timeout(self.patience, self.body.next()).await {
            Ok(Some(Ok(bytes))) => self.buffer.extend_from_slice(&bytes),
            Ok(Some(Err(error))) => return Err(io::Error::other(error)),
            Ok(None) => self.is_over = true,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
        Ok(())
    }
}
