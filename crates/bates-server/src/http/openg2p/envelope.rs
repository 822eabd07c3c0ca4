//! The envelope of every response, and the error codes of the contract.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bates_core::{AllowanceError, ErrorCode, IssueError, NextError};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// The envelope of every response. The order of its fields is part of the contract.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Envelope<R> {
    #[schema(example = "openg2p.idgenerator")]
    id: &'static str,
    #[schema(example = "1.0")]
    version: &'static str,
    /// The time of the response, in UTC.
    #[schema(example = "2026-03-27T10:00:00.000Z")]
    responsetime: String,
    /// The result; `null` if the request failed.
    response: Option<R>,
    /// Why the request failed; empty if it succeeded.
    errors: Vec<ErrorDetail>,
}

/// Why a request failed.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ErrorDetail {
    /// The code: `IDG-001` to `IDG-006`, or a code of Bates if the contract has none for this error.
    #[serde(rename = "errorCode")]
    #[schema(example = "IDG-003")]
    code: &'static str,
    /// What failed.
    message: String,
}

pub(super) struct Success<R>(pub(super) R);

impl<R: Serialize> IntoResponse for Success<R> {
    fn into_response(self) -> Response {
        respond(StatusCode::OK, Some(self.0), vec![])
    }
}

pub(super) struct Failure {
    status: StatusCode,
    error: ErrorDetail,
}

/// A code of the contract, and its status.
#[derive(Clone, Copy)]
pub(super) struct ContractCode(StatusCode, &'static str);

pub(super) const NO_ID_AVAILABLE: ContractCode = ContractCode(StatusCode::SERVICE_UNAVAILABLE, "IDG-001");
/// The contract has no code of its own for it.
const RATE_EXCEEDED: ContractCode = ContractCode(StatusCode::TOO_MANY_REQUESTS, "IDG-001");
pub(super) const EXHAUSTED: ContractCode = ContractCode(StatusCode::GONE, "IDG-002");
pub(super) const UNKNOWN_TYPE: ContractCode = ContractCode(StatusCode::NOT_FOUND, "IDG-003");
pub(super) const NOT_READY: ContractCode = ContractCode(StatusCode::SERVICE_UNAVAILABLE, "IDG-005");
pub(super) const STORE_UNAVAILABLE: ContractCode = ContractCode(StatusCode::SERVICE_UNAVAILABLE, "IDG-006");

impl Failure {
    pub(super) fn new(ContractCode(status, code): ContractCode, message: impl Into<String>) -> Self {
        Self { status, error: ErrorDetail { code, message: message.into() } }
    }

    /// A failure with a code of Bates, for errors that the contract does not know.
    pub(super) fn with_bates_code(code: ErrorCode, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(ContractCode(status, code.name()), message)
    }
}

impl From<NextError> for Failure {
    fn from(error: NextError) -> Self {
        let is_exhausted = matches!(error, NextError::Issue(IssueError::Exhausted { .. }));
        Self::new(if is_exhausted { EXHAUSTED } else { NO_ID_AVAILABLE }, error.to_string())
    }
}

impl From<AllowanceError> for Failure {
    fn from(error: AllowanceError) -> Self {
        let is_store = matches!(error, AllowanceError::Store(_));
        Self::new(if is_store { STORE_UNAVAILABLE } else { RATE_EXCEEDED }, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let can_retry =
            matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        let retry_after = can_retry.then_some([(header::RETRY_AFTER, "1")]);
        (retry_after, respond(self.status, None::<()>, vec![self.error])).into_response()
    }
}

fn respond<R: Serialize>(status: StatusCode, response: Option<R>, errors: Vec<ErrorDetail>) -> Response {
    let responsetime = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    let envelope = Envelope { id: "openg2p.idgenerator", version: "1.0", responsetime, response, errors };
    (status, Json(envelope)).into_response()
}
