//! Documents, each numbered and stored in one commit, and reservations, which the caller confirms or voids.

use std::time::Duration;

use bates_api::{
    Assignment, DocumentRequest, DocumentStatus, LineAnswer, Path, Reservation, ReservationRequest,
    is_idempotency_key,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::mpsc::Receiver;
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::series::Series;
use crate::transport::{Call, LineAnswers, Retry};

/// Limits of one call, unless a single document is larger.
const LINES_MAX: usize = 1_000;
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A document to number. Assigned again, it gets the same number.
#[derive(Clone, Debug)]
pub struct Document {
    key: String,
    content: Box<RawValue>,
}

impl Document {
    /// A document with a fresh key. Keep it, and assign it again if an outcome is unknown.
    pub fn new(content: &impl Serialize) -> Result<Self, Error> {
        let content = serde_json::value::to_raw_value(content);
        let content = content.map_err(|problem| Error::invalid("document", problem.to_string()))?;
        Ok(Self { key: fresh_key(), content })
    }

    /// With the caller's key, 1 to 255 visible characters. The series refuses the key for any other document.
    pub fn with_key(self, key: impl Into<String>) -> Result<Self, Error> {
        Ok(Self { key: checked_key(key.into())?, ..self })
    }

    /// The idempotency key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Client {
    /// The state of a document or a reservation, by its number or its event id.
    pub async fn document(&self, id: &str) -> Result<DocumentStatus, Error> {
        self.transport.get(Path::v1(["documents", id])?).await
    }

    /// Confirms a reservation: its document is saved. Idempotent.
    pub async fn confirm(&self, token: &str) -> Result<DocumentStatus, Error> {
        self.post(Path::v1(["reservations", token, "confirm"])?).await
    }

    /// Voids a reservation: its number becomes a gap. Idempotent.
    pub async fn void(&self, token: &str) -> Result<DocumentStatus, Error> {
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
        self.send("documents", &self.request(&document.content, None), &document.key).await
    }

    /// Numbers many documents, a thousand in a call, and answers in their order. If a call fails, assign all again:
    /// those that have a number get the same. A document that is refused for now is not retried.
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

    /// The state of a document or a reservation of this series, by its number or its event id.
    pub async fn document(&self, id: &str) -> Result<DocumentStatus, Error> {
        let path = Path::v1(["documents", id])?.with("series", self.name());
        self.client.transport.get(path).await
    }

    /// Reserves a number for whole seconds, up to 30 days. Unless it is confirmed in time, it is voided.
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

    /// The same with an idempotency key: the same request gets the same number.
    pub async fn reserve_once(&self, key: impl Into<String>, lasts: Duration) -> Result<Reservation, Error> {
        self.reserve_as(checked_key(key.into())?, lasts).await
    }

    async fn reserve_as(&self, key: String, lasts: Duration) -> Result<Reservation, Error> {
        if lasts.subsec_nanos() > 0 {
            return Err(Error::invalid(
                "time of a reservation",
                format!("{lasts:?}; expected whole seconds"),
            ));
        }
        let seconds = Some(lasts.as_secs());
        let request = ReservationRequest { scope: self.scope.clone(), date: self.date, seconds };
        self.send("reservations", &request, &key).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        to: &str,
        body: &impl Serialize,
        key: &str,
    ) -> Result<T, Error> {
        let call = Call::post(self.path([to])?, Retry::Freely).json(body)?.key(key)?;
        self.client.transport.call(call).await
    }

    fn request(&self, content: &RawValue, key: Option<String>) -> DocumentRequest {
        DocumentRequest { scope: self.scope.clone(), date: self.date, document: content.to_owned(), key }
    }

    fn lines(&self, documents: &[Document]) -> Result<(usize, Vec<u8>), Error> {
        let (mut count, mut body) = (0, Vec::new());
        for Document { key, content } in &documents[..documents.len().min(LINES_MAX)] {
            if count > 0 && body.len() + content.get().len() > BYTES_MAX {
                break;
            }
            serde_json::to_writer(&mut body, &self.request(content, Some(key.clone())))
                .map_err(|problem| Error::invalid("document", problem.to_string()))?;
            body.push(b'\n');
            count += 1;
        }
        Ok((count, body))
    }

    fn read_lines(&self, answer: &[u8], count: usize) -> Result<Vec<Result<Assignment, Error>>, Error> {
        let unexpected = |reason: &str| self.client.transport.unexpected(reason, false);
        let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let read: Result<Vec<LineAnswer>, _> = lines.map(serde_json::from_slice).collect();
        let read = read.map_err(|problem| unexpected(&problem.to_string()))?;
        if read.len() != count {
            return Err(unexpected(&format!("{} answers to {count} documents", read.len())));
        }
        let assigned = |answer| match answer {
            LineAnswer::Assignment(assignment) => Ok(assignment),
            LineAnswer::Refusal { error, .. } => Err(Error::from_problem(error)),
        };
        Ok(read.into_iter().map(assigned).collect())
    }
}

/// Ordered by time: the store inserts new keys next to each other.
fn fresh_key() -> String {
    Uuid::now_v7().to_string()
}

fn checked_key(key: String) -> Result<String, Error> {
    let invalid = || Error::invalid("idempotency key", "expected 1 to 255 visible ASCII characters");
    if is_idempotency_key(&key) { Ok(key) } else { Err(invalid()) }
}
