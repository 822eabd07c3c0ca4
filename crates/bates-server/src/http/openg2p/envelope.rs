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

pub(super) struct Answer<R>(pub(super) R);

impl<R: Serialize> IntoResponse for Answer<R> {
    fn into_response(self) -> Response {
        enveloped(StatusCode::OK, Some(self.0), vec![])
    }
}

pub(super) struct Failure {
    status: StatusCode,
    told: Told,
}

/// A code of the contract, and its status.
#[derive(Clone, Copy)]
pub(super) struct Reason(StatusCode, &'static str);

pub(super) const NONE_NOW: Reason = Reason(StatusCode::SERVICE_UNAVAILABLE, "IDG-001");
pub(super) const EXHAUSTED_FOR_EVER: Reason = Reason(StatusCode::GONE, "IDG-002");
pub(super) const UNKNOWN_TYPE: Reason = Reason(StatusCode::NOT_FOUND, "IDG-003");
pub(super) const STARTING: Reason = Reason(StatusCode::SERVICE_UNAVAILABLE, "IDG-005");
pub(super) const STORE_AWAY: Reason = Reason(StatusCode::SERVICE_UNAVAILABLE, "IDG-006");

impl Failure {
    pub(super) fn new(Reason(status, code): Reason, message: impl Into<String>) -> Self {
        Self { status, told: Told { code, message: message.into() } }
    }

    /// Where the contract has no code.
    pub(super) fn of(code: Code, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(Reason(status, code.name()), message)
    }
}

impl From<NextError> for Failure {
    fn from(error: NextError) -> Self {
        let is_over = matches!(error, NextError::Issue(IssueError::Exhausted { .. }));
        Self::new(if is_over { EXHAUSTED_FOR_EVER } else { NONE_NOW }, error.to_string())
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
