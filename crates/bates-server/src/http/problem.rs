//! Errors as HTTP responses. Every error code has one status.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bates_core::{
    Denial, DocumentError, EndLeaseError, ErrorCode, LeaseError, MachineError, NextError, PoolError,
    StoreError,
};

use crate::series::FieldErrors;

pub(super) type Result<T, E = Problem> = std::result::Result<T, E>;
pub(super) type JsonResult<T> = Result<Json<T>>;

#[derive(Debug)]
pub(super) struct Problem(pub(super) bates_api::Problem);

impl Problem {
    pub(super) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(bates_api::Problem {
            r#type: format!("urn:bates:error:{code}"),
            title: code.meaning().to_owned(),
            status: code.http_status(),
            detail: detail.into(),
            code: code.name().to_owned(),
            may_burn: code.may_burn(),
        })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.0).expect("all keys of a problem are strings");
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let extra_header = match self.0.status {
            401 => Some([(header::WWW_AUTHENTICATE, "Bearer")]),
            429 | 503 => Some([(header::RETRY_AFTER, "1")]),
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

from_coded_errors!(Denial, DocumentError, EndLeaseError, LeaseError, MachineError, NextError, PoolError);

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
