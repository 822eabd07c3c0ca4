//! A request whose body is sent while its answer is read line by line. One attempt, without a time limit.

use std::io;
use std::sync::Arc;

use bates_api::{LineAnswer, Path};
use futures_util::stream;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Method, Response};
use tokio::sync::mpsc::Receiver;

use super::answer::{Attempt, Failed};
use super::{Error, Transport};

type Pieces = Receiver<Vec<u8>>;

/// The answers to lines that are still being sent, in order.
pub struct LineAnswers {
    transport: Arc<Transport>,
    answer: Response,
    buffer: Vec<u8>,
    begin: usize,
}

impl Transport {
    pub(crate) async fn lines(self: &Arc<Self>, path: &Path, pieces: Pieces) -> Result<LineAnswers, Error> {
        let pieces = stream::unfold(pieces, |mut pieces| async {
            let piece = pieces.recv().await?;
            Some((Ok::<_, io::Error>(piece), pieces))
        });
        let request = self.request(&Method::POST, &self.address.url(path)?);
        let request = request.header(CONTENT_TYPE, "application/x-ndjson").body(Body::wrap_stream(pieces));
        let attempt = self.line_attempt();
        let answer = request.send().await.map_err(|error| only_attempt(attempt.unsent(&error)))?;
        if answer.status().is_success() {
            return Ok(LineAnswers { transport: self.clone(), answer, buffer: Vec::new(), begin: 0 });
        }
        Err(only_attempt(attempt.read(answer).await.expect_err("the status is an error")))
    }

    fn line_attempt(&self) -> Attempt<'_> {
        Attempt { host: self.host(), takes_numbers: false }
    }
}

fn only_attempt(failed: Failed) -> Error {
    failed.error.with_attempts(1, false)
}

impl LineAnswers {
    /// The next answer; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<LineAnswer>, Error> {
        loop {
            let rest = &self.buffer[self.begin..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                self.begin += end + 1;
                let read = serde_json::from_slice(&rest[..end]);
                return read.map(Some).map_err(|error| self.transport.unexpected(&error.to_string(), false));
            }
            self.buffer.drain(..self.begin);
            self.begin = 0;
            let chunk = self.answer.chunk().await;
            match chunk.map_err(|error| only_attempt(self.transport.line_attempt().unread(&error)))? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}
