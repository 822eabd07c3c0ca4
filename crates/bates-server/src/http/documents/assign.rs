//! `POST /v1/series/{series}/documents`: numbers a document, and stores it for delivery in the same commit.

use axum::Json;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bates_api as api;
use bates_api::{Day, DocumentRequest, Parameters, is_idempotency_key};
use bates_core::{
    AllowanceError, Assignment, DocumentContent, ErrorCode, Idempotency, Machine, ScopeParams, SeriesEntry,
    Store,
};
use sha2::{Digest, Sha256};

use super::lines;
use crate::http::permit::Permit;
use crate::http::problem::{Problem, Result};
use crate::http::request;
use crate::http::routes::{Context, Series};

/// The whole request: a document and its scope.
pub(super) const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// The caller of a request, with the idempotency key of the request.
pub(in crate::http) struct KeyedCaller {
    pub(super) permit: Permit,
    pub(super) key: Option<String>,
}

impl<C: Send + Sync> FromRequestParts<C> for KeyedCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &C) -> Result<Self> {
        let permit = Permit::from_request_parts(parts, context).await?;
        let Some(value) = parts.headers.get("idempotency-key") else { return Ok(Self { permit, key: None }) };
        let not_ascii = |_| Problem::new(ErrorCode::BAD_ARGUMENTS, "the header Idempotency-Key is not ASCII");
        let text = value.to_str().map_err(not_ascii)?.trim();
        // The key may be quoted: a string in the syntax of structured header fields.
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        Ok(Self { permit, key: Some(text.to_owned()) })
    }
}

impl KeyedCaller {
    /// The key of a request, and a digest of its content that does not depend on the order of its fields.
    pub(super) fn idempotency(
        &self,
        scope: &Parameters,
        date: Option<Day>,
        content: &str,
    ) -> Result<Option<Idempotency>> {
        let Some(key) = &self.key else { return Ok(None) };
        let invalid = |error: serde_json::Error| Problem::new(ErrorCode::BAD_DOCUMENT, error.to_string());
        let content: serde_json::Value = serde_json::from_str(content).map_err(invalid)?;
        if !is_idempotency_key(key) {
            let detail = "the idempotency key is invalid: it has 1 to 255 printable ASCII characters";
            return Err(Problem::new(ErrorCode::BAD_ARGUMENTS, detail));
        }
        let mut parameters = scope.pairs();
        parameters.sort_unstable();
        let request = serde_json::json!([parameters, date.map(|date| date.to_string()), content]);
        let digest = Sha256::digest(request.to_string()).into();
        Ok(Some(Idempotency {
            caller: self.permit.caller.key_owner().into(),
            key: key.as_str().into(),
            digest,
        }))
    }

    pub(super) async fn assign<S: Store>(
        &self,
        machine: &Machine<S>,
        entry: &SeriesEntry,
        request: &DocumentRequest,
    ) -> Result<Assignment> {
        let document = request.document.get();
        if document == "null" {
            return Err(Problem::new(ErrorCode::BAD_DOCUMENT, "document is null: send any other JSON value"));
        }
        let idempotency = self.idempotency(&request.scope, request.date, document)?;
        let pairs = request.scope.pairs();
        let params = self.permit.scope(&pairs, request.date.map(Day::date))?;
        let content = DocumentContent::Document(document.into());
        self.assign_content(machine, entry, params, content, idempotency).await
    }

    pub(super) async fn assign_content<S: Store>(
        &self,
        machine: &Machine<S>,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
        content: DocumentContent,
        idempotency: Option<Idempotency>,
    ) -> Result<Assignment> {
        let (caller, name) = (&self.permit.caller, self.permit.caller.name());
        match (caller.pay(machine, 1).await, idempotency) {
            (Ok(payment), idempotency) => {
                let assigned = machine.assign(entry, params, content, idempotency, name).await;
                let is_new = assigned.as_ref().is_ok_and(|assignment| assignment.is_new);
                caller.give_back(payment, u64::from(!is_new));
                Ok(assigned?)
            }
            // A repeated request costs nothing, so it is answered when the quota is used up too.
            (Err(refusal @ AllowanceError::Quota { .. }), Some(idempotency)) => {
                let earlier = machine.find_assignment(entry, params, content, idempotency, name).await?;
                earlier.ok_or_else(|| refusal.into())
            }
            (Err(refusal), _) => Err(refusal.into()),
        }
    }
}

/// Number a document and store it for delivery
///
/// The number and the document are stored in one commit; the relay delivers the document to the sink of the series. The
/// same request with the same `Idempotency-Key` always gets the same number. With `Content-Type: application/x-ndjson`,
/// each line is such a request with an optional `key`, and the response has one line for each, in order: the number or an
/// `error`. A line without `key` uses the `Idempotency-Key` header followed by `:` and its line number.
#[utoipa::path(post, path = "/v1/series/{series}/documents", tag = "documents",
    params(("series" = String, Path, description = "The name of the series", example = "document"),
        ("Idempotency-Key" = Option<String>, Header, description = "A key chosen by the caller, which identifies this request")),
    request_body(content((DocumentRequest = "application/json"), (String = "application/x-ndjson"))),
    responses((status = 202, description = "The document has a number and will be delivered", body = api::Assignment),
        (status = 200, description = "The number of an earlier request with the same key; or, for many lines, one answer per line", content((api::Assignment = "application/json"), (String = "application/x-ndjson"))),
        (status = "default", description = "No number was issued", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(crate) async fn number_document<S: Store>(
    context: Context<S>,
    Series(entry): Series,
    caller: KeyedCaller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    if is_ndjson(&headers) {
        return lines::respond(context, entry, caller, body);
    }
    let body = request::read_body(body, DOCUMENT_BYTES_MAX, context.body_timeout).await?;
    let request: DocumentRequest = request::parse_json(&body)?;
    if request.key.is_some() {
        let detail = "key is only for lines: send the key of a single document as the header Idempotency-Key";
        return Err(Problem::new(ErrorCode::BAD_BODY, detail));
    }
    let assignment = caller.assign(&context.machine, &entry, &request).await?;
    let status = if assignment.is_new { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(to_api_assignment(&assignment))).into_response())
}

pub(super) fn to_api_assignment(assignment: &Assignment) -> api::Assignment {
    let Assignment { document_id, number, state, .. } = assignment;
    api::Assignment { id: number.to_string(), event: document_id.to_string(), state: state.name().to_owned() }
}

fn is_ndjson(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let media_type = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    [&b"application/x-ndjson"[..], b"application/jsonl"].iter().any(|it| media_type.eq_ignore_ascii_case(it))
}
