//! Headers that tell browsers to trust no answer more than it needs. Every answer has them, also a refusal.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

const COMMON: [(HeaderName, HeaderValue); 3] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

const API: [(HeaderName, HeaderValue); 2] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
];

/// The Swagger UI loads its own files, asks this server, and shows images that its style sheet contains. It needs no inline
/// script or style.
const UI_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    Api,
    /// A file of the Swagger UI.
    Ui,
}

impl AnswerKind {
    pub(super) fn of_path(path: &str) -> Self {
        let is_ui = path.strip_prefix("/docs").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if is_ui { Self::Ui } else { Self::Api }
    }

    pub(super) fn add_headers(self, headers: &mut HeaderMap) {
        headers.extend(COMMON);
        match self {
            Self::Api => headers.extend(API),
            Self::Ui => drop(headers.insert(header::CONTENT_SECURITY_POLICY, UI_POLICY)),
        }
    }
}
