//! Documents and reservations of an embedded machine: number and document in one commit.
//!
//! Invariant: a request has the same digest here as on a server. A folder that was moved to a server still answers a
//! repeated request with the same number.

use std::time::Duration;

use bates_core::{
    ActionOutcome, Actor, Assignment, Document, DocumentAction, DocumentContent, DocumentFilter, Idempotency,
    ScopeParams,
};
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
    pub async fn assign(&self, document: &str) -> Result<Assignment> {
        self.assign_request(Request::document(document)?, None).await
    }

    /// As [`Self::assign`], once: the same key and request get the same number forever; another request is refused.
    pub async fn assign_once(&self, key: &str, document: &str) -> Result<Assignment> {
        self.assign_request(Request::document(document)?, Some(key)).await
    }

    /// Reserves a number for this time, in whole seconds. A reservation that is not confirmed in time is voided, and its
    /// number becomes a gap: see [`Bates::confirm`].
    pub async fn reserve(&self, time: Duration) -> Result<Assignment> {
        self.assign_request(Request::reservation(time)?, None).await
    }

    /// As [`Self::reserve`], once: the same key with the same time, scope and date gets the same number.
    pub async fn reserve_once(&self, key: &str, time: Duration) -> Result<Assignment> {
        self.assign_request(Request::reservation(time)?, Some(key)).await
    }

    async fn assign_request(&self, request: Request, key: Option<&str>) -> Result<Assignment> {
        let Request { content, json } = request;
        let idempotency = key.map(|key| self.idempotency(key, &json)).transpose()?;
        let scope = ScopeParams { parameters: &self.parameters(), date: self.date };
        Ok(self.machine.assign(&self.entry, scope, content, idempotency, &self.caller).await?)
    }

    fn idempotency(&self, key: &str, request: &Value) -> Result<Idempotency> {
        let is_visible = key.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if key.is_empty() || key.len() > KEY_BYTES_MAX || !is_visible {
            return Err(Error::BadKey);
        }
        let mut parameters = self.parameters();
        parameters.sort_unstable();
        let request = json!([parameters, self.date.map(|date| date.to_string()), request]);
        let digest = Sha256::digest(request.to_string()).into();
        Ok(Idempotency { caller: "".into(), key: key.into(), digest })
    }
}

impl Bates {
    /// Confirms a reservation: its document is saved.
    pub async fn confirm(&self, document_id: Uuid) -> Result<Document> {
        self.apply_action(document_id, DocumentAction::Confirm).await
    }

    /// Voids a reservation: its document will not be saved. The number is a gap and is never issued again.
    pub async fn void(&self, document_id: Uuid) -> Result<Document> {
        self.apply_action(document_id, DocumentAction::Void).await
    }

    /// Confirms, voids, retries or abandons a document or a reservation.
    pub async fn apply_action(&self, document_id: Uuid, action: DocumentAction) -> Result<Document> {
        match self.open_machine()?.apply_action(document_id, action, Actor::library("library")).await? {
            ActionOutcome::Done(document) => Ok(document),
            ActionOutcome::Refused(document) => Err(Error::WrongState(Box::new(document))),
            ActionOutcome::AttemptUnderWay(document) => Err(Error::BeingDelivered(Box::new(document))),
            ActionOutcome::NotFound => Err(Error::UnknownDocument(document_id)),
        }
    }

    /// Documents and reservations by their ids, ascending, after `after`, at most `limit`.
    pub async fn documents(
        &self,
        filter: DocumentFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Document>> {
        Ok(self.open_machine()?.documents(filter, after, limit).await?)
    }
}

/// The content, and the JSON of the same request to a server.
struct Request {
    content: DocumentContent,
    json: Value,
}

impl Request {
    fn document(text: &str) -> Result<Self> {
        if text.len() > DOCUMENT_BYTES_MAX {
            let problem = format!("it has {} bytes; the maximum is {DOCUMENT_BYTES_MAX}", text.len());
            return Err(Error::Document(problem.into()));
        }
        match serde_json::from_str(text) {
            Ok(Value::Null) => Err(Error::Document("it is null: pass any other JSON value".into())),
            Ok(json) => Ok(Self { content: DocumentContent::Document(text.into()), json }),
            Err(error) => Err(Error::Document(error.to_string().into())),
        }
    }

    fn reservation(time: Duration) -> Result<Self> {
        let seconds = time.as_secs();
        if !(1..=SECONDS_MAX).contains(&seconds) {
            return Err(Error::BadDuration { seconds, max: SECONDS_MAX });
        }
        let content = DocumentContent::Reservation(Duration::from_secs(seconds));
        Ok(Self { content, json: json!({ "reservation": seconds }) })
    }
}
