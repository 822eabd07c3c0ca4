//! Documents and reservations of an embedded machine: number and document in one commit.
//! Invariant: a request is known by the digest that a server would give it, so that a folder can move to a server and
//! the same request still gets the same number.

use std::time::Duration;

use bates_core::{Assigned, Content, Decided, Decision, Document, Filter, Idempotency, ScopeName};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::error::Result;
use super::{Bates, Error, Numbering};

const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
const KEY_BYTES_MAX: usize = 255;

/// Thirty days.
const SECONDS_MAX: u64 = 30 * 24 * 60 * 60;

impl Numbering {
    /// Numbers a document, which is JSON, and stores it for delivery to the sink of the series, in one commit.
    pub async fn assign(&self, document: &str) -> Result<Assigned> {
        self.assigned(Request::document(document)?, None).await
    }

    /// As [`Self::assign`], once: the same key and request get the same number forever; another request is refused.
    pub async fn assign_once(&self, key: &str, document: &str) -> Result<Assigned> {
        self.assigned(Request::document(document)?, Some(key)).await
    }

    /// Reserves a number for this time, in whole seconds. Without [`Bates::confirm`] in time it is voided, and the number is a gap.
    pub async fn reserve(&self, lasts: Duration) -> Result<Assigned> {
        self.assigned(Request::reservation(lasts)?, None).await
    }

    /// As [`Self::reserve`], once: the same key with the same time, scope and date gets the same number.
    pub async fn reserve_once(&self, key: &str, lasts: Duration) -> Result<Assigned> {
        self.assigned(Request::reservation(lasts)?, Some(key)).await
    }

    async fn assigned(&self, Request { content, asked }: Request, key: Option<&str>) -> Result<Assigned> {
        let idempotency = key.map(|key| self.idempotency(key, &asked)).transpose()?;
        let parameters = self.parameters();
        let name = ScopeName { parameters: &parameters, date: self.date };
        Ok(self.machine.assign(&self.entry, name, content, idempotency, &self.who).await?)
    }

    fn idempotency(&self, key: &str, asked: &Value) -> Result<Idempotency> {
        let is_visible = key.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if key.is_empty() || key.len() > KEY_BYTES_MAX || !is_visible {
            return Err(Error::Key);
        }
        let mut parameters = self.parameters();
        parameters.sort_unstable();
        let asked = json!([parameters, self.date.map(|date| date.to_string()), asked]);
        let digest = Sha256::digest(asked.to_string()).into();
        Ok(Idempotency { caller: "".into(), key: key.into(), digest })
    }
}

impl Bates {
    /// The document of a reservation is saved.
    pub async fn confirm(&self, event: Uuid) -> Result<Document> {
        self.decide(event, Decision::Confirm).await
    }

    /// It is not, and will not be. Its number is a gap, and is never given again.
    pub async fn void(&self, event: Uuid) -> Result<Document> {
        self.decide(event, Decision::Void).await
    }

    /// Decides about a document or a reservation.
    pub async fn decide(&self, event: Uuid, decision: Decision) -> Result<Document> {
        match self.machine.decide(event, decision).await? {
            Decided::Done(document) => Ok(document),
            Decided::Refused(document) => Err(Error::WrongState(Box::new(document))),
            Decided::UnderWay(document) => Err(Error::UnderWay(Box::new(document))),
            Decided::Unknown => Err(Error::UnknownDocument(event)),
        }
    }

    /// Documents and reservations by their ids, ascending, after `after`, at most `limit`.
    pub async fn documents(
        &self,
        filter: Filter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Document>> {
        Ok(self.machine.documents(filter, after, limit).await?)
    }
}

/// The content, and the JSON that a server would be sent for it.
struct Request {
    content: Content,
    asked: Value,
}

impl Request {
    fn document(text: &str) -> Result<Self> {
        if text.len() > DOCUMENT_BYTES_MAX {
            return Err(Error::Document(format!("it has more than {DOCUMENT_BYTES_MAX} bytes").into()));
        }
        match serde_json::from_str(text) {
            Ok(Value::Null) => Err(Error::Document("it is null".into())),
            Ok(asked) => Ok(Self { content: Content::Document(text.into()), asked }),
            Err(error) => Err(Error::Document(error.to_string().into())),
        }
    }

    fn reservation(lasts: Duration) -> Result<Self> {
        let seconds = lasts.as_secs();
        if !(1..=SECONDS_MAX).contains(&seconds) {
            return Err(Error::Lasts { seconds, max: SECONDS_MAX });
        }
        let content = Content::Reservation(Duration::from_secs(seconds));
        Ok(Self { content, asked: json!({ "reservation": seconds }) })
    }
}
