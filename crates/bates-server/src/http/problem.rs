//! What went wrong, as an answer: the status that its code has, and when to ask again.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bates_core::{
    AssignRefused, Code, EndRefused, LeaseRefused, MachineError, NextError, PoolRefused, StoreError,
};

use crate::series::FieldErrors;

pub(super) type Answer<T> = Result<Json<T>, Problem>;

#[derive(Debug)]
pub(super) struct Problem(pub(super) bates_api::Problem);

impl Problem {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
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
        let body = serde_json::to_vec(&self.0).expect("a problem has no keys that are not texts");
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let more = match self.0.status {
            401 => Some([(header::WWW_AUTHENTICATE, "Bearer")]),
            429 | 503 => Some([(header::RETRY_AFTER, "1")]),
            _ => None,
        };
        (status, [(header::CONTENT_TYPE, "application/problem+json")], more, body).into_response()
    }
}

/// Errors of the core that know their code.
macro_rules! coded {
    ($($error:ty),*) => {
        $(impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                Self::new(error.code(), error.to_string())
            }
        })*
    };
}

coded!(AssignRefused, EndRefused, LeaseRefused, MachineError, NextError, PoolRefused);

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
