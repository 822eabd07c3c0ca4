//! What is around every answer, and the codes of errors.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bates_core::{Code, IssueError, NextError};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// What is around every answer. The order of its fields is part of the contract.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Envelope<R> {
    #[schema(example = "openg2p.idgenerator")]
    id: &'static str,
    #[schema(example = "1.0")]
    version: &'static str,
    /// When it was answered, in UTC.
    #[schema(example = "2026-03-27T10:00:00.000Z")]
    responsetime: String,
    /// The answer; `null` if there is none.
    response: Option<R>,
    /// Why there is none; empty if there is one.
    errors: Vec<Told>,
}

/// Why there is no answer.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Told {
    /// The code: `IDG-001` to `IDG-006`, or one of Bates' own where the contract has none.
    #[serde(rename = "errorCode")]
    #[schema(example = "IDG-003")]
    code: &'static str,
    /// A sentence.
    message: String,
}

/// An answer in its envelope.
pub(super) struct Answer<R>(pub(super) R);

impl<R: Serialize> IntoResponse for Answer<R> {
    fn into_response(self) -> Response {
        enveloped(StatusCode::OK, Some(self.0), vec![])
    }
}

/// No answer: a status, a code and a sentence.
pub(super) struct Failure {
    status: StatusCode,
    told: Told,
}

impl Failure {
    /// Nothing can be issued just now.
    pub(super) fn none_now(message: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "IDG-001", message)
    }

    /// Nothing will ever be issued again.
    pub(super) fn exhausted(message: String) -> Self {
        Self::new(StatusCode::GONE, "IDG-002", message)
    }

    /// There is no such type.
    pub(super) fn unknown_type(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "IDG-003", format!("there is no ID type {name:?}"))
    }

    /// The start is not complete.
    pub(super) fn starting(message: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "IDG-005", message)
    }

    /// The store cannot be written.
    pub(super) fn store_away(message: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "IDG-006", message)
    }

    /// What the contract has no code for.
    pub(super) fn of(code: Code, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(code.http_status());
        Self::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), code.name(), message.into())
    }

    fn new(status: StatusCode, code: &'static str, message: String) -> Self {
        Self { status, told: Told { code, message } }
    }
}

impl From<NextError> for Failure {
    fn from(error: NextError) -> Self {
        match error {
            NextError::Issue(IssueError::Exhausted { .. }) => Self::exhausted(error.to_string()),
            _ => Self::none_now(error.to_string()),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let is_away = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let again = is_away.then_some([(header::RETRY_AFTER, "1")]);
        (again, enveloped(self.status, None::<()>, vec![self.told])).into_response()
    }
}

fn enveloped<R: Serialize>(status: StatusCode, response: Option<R>, errors: Vec<Told>) -> Response {
    let responsetime = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    let envelope = Envelope { id: "openg2p.idgenerator", version: "1.0", responsetime, response, errors };
    (status, Json(envelope)).into_response()
}
