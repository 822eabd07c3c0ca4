//! Errors as HTTP responses. Every error code has one status.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bates_core::{
    AllowanceError, Denial, DocumentError, EndLeaseError, ErrorCode, LeaseError, ListError, MachineError,
    NextError, PoolError, StoreError, TokenError,
};

use crate::series::FieldErrors;

pub(super) type Result<T, E = Problem> = std::result::Result<T, E>;
pub(super) type JsonResult<T> = Result<Json<T>>;

#[derive(Debug)]
pub(super) struct Problem {
    pub(super) body: bates_api::Problem,
    /// When to try again, for an answer that says so.
    retry_after_s: u64,
}

impl Problem {
    pub(super) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        let body = bates_api::Problem {
            r#type: format!("urn:bates:error:{code}"),
            title: code.meaning().to_owned(),
            status: code.http_status(),
            detail: detail.into(),
            code: code.name().to_owned(),
            may_burn: code.may_burn(),
        };
        Self { body, retry_after_s: 1 }
    }

    /// Rounds up to whole seconds.
    pub(super) fn with_retry_after(self, time: Duration) -> Self {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Self { retry_after_s: seconds.max(1), ..self }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body).expect("all keys of a problem are strings");
        let status = StatusCode::from_u16(self.body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let extra_header = match self.body.status {
            401 => Some([(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))]),
            429 | 503 => Some([(header::RETRY_AFTER, HeaderValue::from(self.retry_after_s))]),
            _ => None,
        };
        (status, [(header::CONTENT_TYPE, "application/problem+json")], extra_header, body).into_response()
    }
}

/// Converts errors of the core, which have a code.
macro_rules! from_coded_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                Self::new(error.code(), error.to_string())
            }
        })*
    };
}

from_coded_errors!(
    Denial,
    DocumentError,
    EndLeaseError,
    LeaseError,
    ListError,
    MachineError,
    NextError,
    PoolError,
    TokenError
);

impl From<AllowanceError> for Problem {
    fn from(error: AllowanceError) -> Self {
        let problem = Self::new(error.code(), error.to_string());
        error.retry_after().into_iter().fold(problem, Self::with_retry_after)
    }
}

impl From<FieldErrors> for Problem {
    fn from(error: FieldErrors) -> Self {
        Self::new(ErrorCode::BAD_SERIES, error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        MachineError::from(error).into()
    }
}
