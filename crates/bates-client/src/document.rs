//! Documents: a number for each, with its document in one commit, and what became of it. Reservations: a number for a
//! document that the caller saves itself, confirmed within a time or voided.

use std::time::Duration;

use bates_api::{
    Assignment, DocumentRequest, KnownDocument, LineAnswer, Path, Reservation, ReservationRequest,
    is_idempotency_key,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::Receiver;
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::series::Series;
use crate::transport::{Call, LineAnswers, Retry};

/// Documents that are sent together.
const LINES_MAX: usize = 1_000;

/// Bytes that are sent together, unless one document alone has more.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A document that is to be numbered. The same one gets the same number, however often it is assigned.
#[derive(Clone, Debug)]
pub struct Document {
    key: String,
    content: Box<RawValue>,
}

impl Document {
    /// A document with a key that nobody else has. Keep it, and assign it again, where an outcome is unknown.
    pub fn new(content: &impl Serialize) -> Result<Self, Error> {
        let content = serde_json::value::to_raw_value(content);
        let content = content.map_err(|problem| Error::wrong("document", problem.to_string()))?;
        Ok(Self { key: fresh_key(), content })
    }

    /// With a key of the caller's, 1 to 255 visible characters. The series refuses it with another document for ever.
    pub fn with_key(self, key: impl Into<String>) -> Result<Self, Error> {
        Ok(Self { key: checked_key(key.into())?, ..self })
    }

    /// Its idempotency key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Client {
    /// What became of a document or a reservation, by its number or its event id.
    pub async fn document(&self, id: &str) -> Result<KnownDocument, Error> {
        self.transport.get(Path::v1(["documents", id])?).await
    }

    /// The document of a reservation is saved. Twice is once.
    pub async fn confirm(&self, token: &str) -> Result<KnownDocument, Error> {
        self.post(Path::v1(["reservations", token, "confirm"])?).await
    }

    /// The document of a reservation will not be saved: its number is a gap from now on. Twice is once.
    pub async fn void(&self, token: &str) -> Result<KnownDocument, Error> {
        self.post(Path::v1(["reservations", token, "void"])?).await
    }
}

impl Series {
    /// Numbers a document and stores it for delivery, in one commit.
    ///
    /// ```no_run
    /// # async fn first(client: bates_client::Client) -> Result<(), bates_client::Error> {
    /// use bates_client::Document;
    ///
    /// let plans = client.series("document").scope([("project", "PROJ"), ("type", "9012")]);
    /// let plan = Document::new(&serde_json::json!({"title": "Plan"}))?.with_key("order-4711")?;
    /// let assigned = plans.assign(&plan).await?;
    /// let state = client.document(&assigned.id).await?.state;
    /// # Ok(()) }
    /// ```
    pub async fn assign(&self, document: &Document) -> Result<Assignment, Error> {
        let request = self.request(&document.content, None);
        let call = Call::post(self.path(["documents"])?, Retry::Freely).json(&request)?.key(&document.key)?;
        self.client.transport.call(call).await
    }

    /// Numbers many documents: what came of each, in order. A thousand are sent in a call, and share commits.
    ///
    /// If a call fails, all documents may be assigned again: those that have a number get the same. A document that was
    /// refused for now is not tried again by itself.
    pub async fn assign_all(&self, documents: &[Document]) -> Result<Vec<Result<Assignment, Error>>, Error> {
        let mut answers = Vec::with_capacity(documents.len());
        while answers.len() < documents.len() {
            let (count, body) = self.lines(&documents[answers.len()..])?;
            let call = Call::post(self.path(["documents"])?, Retry::Freely);
            let answer = self.client.transport.bytes(call.body("application/x-ndjson", body)).await?;
            answers.extend(self.read_lines(&answer, count)?);
        }
        Ok(answers)
    }

    /// Numbers documents as a stream of lines, each a `DocumentRequest`; pieces may hold several lines. For commands.
    #[doc(hidden)]
    pub async fn assign_lines(&self, pieces: Receiver<Vec<u8>>) -> Result<LineAnswers, Error> {
        self.client.transport.lines(&self.path(["documents"])?, pieces).await
    }

    /// What became of a document or a reservation of this series, by its number or its event id.
    pub async fn document(&self, id: &str) -> Result<KnownDocument, Error> {
        let path = Path::v1(["documents", id])?.with("series", self.name());
        self.client.transport.get(path).await
    }

    /// Reserves a number for so long, in whole seconds, up to 30 days. Confirm it once its document is saved, or void it.
    /// What is not confirmed in time is voided.
    ///
    /// ```no_run
    /// # async fn first(client: bates_client::Client) -> Result<(), bates_client::Error> {
    /// use std::time::Duration;
    ///
    /// let reserved = client.series("invoice").reserve(Duration::from_mins(15)).await?;
    /// // Save the document under reserved.id, then:
    /// client.confirm(&reserved.token).await?;
    /// # Ok(()) }
    /// ```
    pub async fn reserve(&self, lasts: Duration) -> Result<Reservation, Error> {
        self.reserve_as(fresh_key(), lasts).await
    }

    /// The same with an idempotency key: the same request gets the same number, for ever.
    pub async fn reserve_once(&self, key: impl Into<String>, lasts: Duration) -> Result<Reservation, Error> {
        self.reserve_as(checked_key(key.into())?, lasts).await
    }

    async fn reserve_as(&self, key: String, lasts: Duration) -> Result<Reservation, Error> {
        if lasts.subsec_nanos() > 0 {
            return Err(Error::wrong("time of a reservation", format!("{lasts:?} are no whole seconds")));
        }
        let seconds = Some(lasts.as_secs());
        let request = ReservationRequest { scope: self.scope.clone(), date: self.date, seconds };
        let call = Call::post(self.path(["reservations"])?, Retry::Freely).json(&request)?.key(&key)?;
        self.client.transport.call(call).await
    }

    fn request(&self, content: &RawValue, key: Option<String>) -> DocumentRequest {
        DocumentRequest { scope: self.scope.clone(), date: self.date, document: content.to_owned(), key }
    }

    /// As many documents as are sent together, as lines.
    fn lines(&self, documents: &[Document]) -> Result<(usize, Vec<u8>), Error> {
        let (mut count, mut body) = (0, Vec::new());
        for Document { key, content } in &documents[..documents.len().min(LINES_MAX)] {
            if count > 0 && body.len() + content.get().len() > BYTES_MAX {
                break;
            }
            serde_json::to_writer(&mut body, &self.request(content, Some(key.clone())))
                .map_err(|problem| Error::wrong("document", problem.to_string()))?;
            body.push(b'\n');
            count += 1;
        }
        Ok((count, body))
    }

    fn read_lines(&self, answer: &[u8], count: usize) -> Result<Vec<Result<Assignment, Error>>, Error> {
        let strange = |reason: &str| self.client.transport.strange(reason, false);
        let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let read: Result<Vec<LineAnswer>, _> = lines.map(serde_json::from_slice).collect();
        let read = read.map_err(|problem| strange(&problem.to_string()))?;
        if read.len() != count {
            return Err(strange(&format!("{} answers to {count} documents", read.len())));
        }
        let assigned = |answer| match answer {
            LineAnswer::Assignment(assignment) => Ok(assignment),
            LineAnswer::Refusal { error, .. } => Err(Error::of(error)),
        };
        Ok(read.into_iter().map(assigned).collect())
    }
}

/// A key that nobody else has. Ordered by time, so that a store that keeps it for ever puts it beside its neighbours.
fn fresh_key() -> String {
    Uuid::now_v7().to_string()
}

fn checked_key(key: String) -> Result<String, Error> {
    if is_idempotency_key(&key) {
        return Ok(key);
    }
    Err(Error::wrong("idempotency key", "it has 1 to 255 visible characters of ASCII"))
}
