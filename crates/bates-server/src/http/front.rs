//! The door: who is let in, before anything of a request is looked at.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Request, header};
use bates_core::Code;

use super::problem::Problem;
use crate::Access;

/// What whoever starts the port decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who is let in.
    pub access: Arc<Access>,
    /// A request whose head does not arrive whole in this time is dropped with its connection, and so is a
    /// connection on which nothing is asked for as long.
    pub head_timeout: Duration,
    /// A body that does not arrive whole in this time is refused.
    pub body_timeout: Duration,
}

impl Settings {
    /// With a patience that slow networks do not exhaust.
    pub fn new(access: Arc<Access>) -> Self {
        Self { access, head_timeout: Duration::from_mins(1), body_timeout: Duration::from_secs(30) }
    }

    /// Why a request is not let in, if it is not.
    pub(super) fn refusal<B>(&self, request: &Request<B>) -> Option<Problem> {
        let path = request.uri().path();
        if is_public(path) {
            return None;
        }
        if !self.access.is_open() && !self.admits(request.headers()) {
            return Some(Problem::new(Code::UNAUTHORIZED, "send Authorization: Bearer with the secret"));
        }
        // A browser names the page that made it ask. Without this, any page that somebody looks at on this
        // machine could take numbers.
        is_cross_origin(request.headers())
            .then(|| Problem::new(Code::CROSS_ORIGIN, "the request comes from a page of another site"))
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).map(axum::http::HeaderValue::as_bytes);
        let token = given.and_then(|given| match given.split_at_checked(7) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(token),
            _ => None,
        });
        token.is_some_and(|token| self.access.admits(token.trim_ascii()))
    }
}

/// What tells nothing about numbers: whether the server lives, and how it is used.
fn is_public(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/openapi.json" | "/docs") || path.starts_with("/docs/")
}

fn is_cross_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let host = headers.get(header::HOST).map(axum::http::HeaderValue::as_bytes);
    let of_origin = origin.as_bytes().splitn(2, |byte| *byte == b':').nth(1);
    of_origin.and_then(|rest| rest.strip_prefix(b"//")) != host
}
