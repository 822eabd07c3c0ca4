//! What went wrong, as `application/problem+json`: the stable code, a sentence, and whether a number may be
//! burned.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bates_core::{AssignRefused, Code, MachineError, NextError, StoreError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::series::FieldErrors;

/// An error, as RFC 9457 describes it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// The kind of problem, a name that never changes.
    #[schema(example = "urn:bates:error:exhausted")]
    r#type: String,
    /// What happened, in general.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What happened, in particular.
    detail: String,
    /// The stable code.
    #[schema(example = "exhausted")]
    code: &'static str,
    /// Whether a number may have been taken that nobody was given.
    may_burn: bool,
}

impl Problem {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            r#type: format!("urn:bates:error:{code}"),
            title: code.meaning(),
            status: code.http_status(),
            detail: detail.into(),
            code: code.name(),
            may_burn: code.may_burn(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).expect("a problem has no keys that are not texts");
        let mut response = Response::new(Body::from(body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut say = |name: HeaderName, value: &'static str| {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        };
        say(header::CONTENT_TYPE, "application/problem+json");
        match self.status {
            401 => say(header::WWW_AUTHENTICATE, "Bearer"),
            429 | 503 => say(header::RETRY_AFTER, "1"),
            _ => {}
        }
        response
    }
}

impl From<NextError> for Problem {
    fn from(error: NextError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<AssignRefused> for Problem {
    fn from(error: AssignRefused) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<MachineError> for Problem {
    fn from(error: MachineError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<FieldErrors> for Problem {
    fn from(error: FieldErrors) -> Self {
        Self::new(Code::BAD_SERIES, error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        MachineError::from(error).into()
    }
}
