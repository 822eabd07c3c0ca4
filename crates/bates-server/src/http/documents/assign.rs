//! `POST /v1/series/{series}/documents`: a number for a document, which is stored for delivery in the same commit.

use axum::Json;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bates_api::{Assignment, Day, DocumentRequest, Parameters, is_idempotency_key};
use bates_core::{Assigned, Code, Content, Entry, Idempotency, Machine, Store};
use sha2::{Digest, Sha256};

use super::lines;
use crate::Caller;
use crate::http::ask;
use crate::http::problem::Problem;
use crate::http::routes::{Context, Series};

/// For a document and its scope.
pub(super) const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

pub(in crate::http) struct Sender {
    pub(super) caller: Caller,
    pub(super) key: Option<String>,
}

impl<C: Send + Sync> FromRequestParts<C> for Sender {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &C) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_else(|| Caller::at(None));
        let Some(value) = parts.headers.get("idempotency-key") else { return Ok(Self { caller, key: None }) };
        let bad = |_| Problem::new(Code::BAD_ARGUMENTS, "Idempotency-Key is not ASCII");
        let text = value.to_str().map_err(bad)?.trim();
        // It may be quoted, as a string of structured fields.
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        Ok(Self { caller, key: Some(text.to_owned()) })
    }
}

impl Sender {
    /// The key of a request, and the digest of all that it asks for, whatever the order of its fields.
    pub(super) fn idempotency(
        &self,
        scope: &Parameters,
        date: Option<Day>,
        content: &str,
    ) -> Result<Option<Idempotency>, Problem> {
        let Some(key) = &self.key else { return Ok(None) };
        let bad = |error: serde_json::Error| Problem::new(Code::BAD_DOCUMENT, error.to_string());
        let content: serde_json::Value = serde_json::from_str(content).map_err(bad)?;
        if !is_idempotency_key(key) {
            let detail = "an idempotency key has 1 to 255 visible characters of ASCII";
            return Err(Problem::new(Code::BAD_ARGUMENTS, detail));
        }
        let mut parameters: Vec<_> = scope.iter().collect();
        parameters.sort_unstable();
        let asked = serde_json::json!([parameters, date.map(|date| date.to_string()), content]);
        let digest = Sha256::digest(asked.to_string()).into();
        Ok(Some(Idempotency { caller: self.caller.owner().into(), key: key.as_str().into(), digest }))
    }

    pub(super) async fn number<S: Store>(
        &self,
        machine: &Machine<S>,
        entry: &Entry,
        request: &DocumentRequest,
    ) -> Result<Assigned, Problem> {
        let document = request.document.get();
        if document == "null" {
            return Err(Problem::new(Code::BAD_DOCUMENT, "document is null"));
        }
        let idempotency = self.idempotency(&request.scope, request.date, document)?;
        let parameters: Vec<_> = request.scope.iter().collect();
        let name = ask::name(&parameters, request.date);
        let content = Content::Document(document.into());
        Ok(machine.assign(entry, name, content, idempotency, self.caller.who()).await?)
    }
}

/// Number a document and store it for delivery
///
/// Number and document are stored in one commit; the relay delivers it to the sink of the series. With an
/// `Idempotency-Key` the same request gets the same number, for ever. With `Content-Type: application/x-ndjson` every
/// line is such a request, with an optional `key`, and the answer is a line for each, in order: the number or an
/// `error`. A key in the head of such a request stands for each line with `:` and the number of the line behind it.
#[utoipa::path(post, path = "/v1/series/{series}/documents", tag = "documents",
    params(("series" = String, Path, description = "The name of a series", example = "document"),
        ("Idempotency-Key" = Option<String>, Header, description = "What the caller calls this request")),
    request_body(content((DocumentRequest = "application/json"), (String = "application/x-ndjson"))),
    responses((status = 202, description = "It has a number and will be delivered", body = Assignment),
        (status = 200, description = "The same request had this number already; or an answer for each line", content((Assignment = "application/json"), (String = "application/x-ndjson"))),
        (status = "default", description = "No number was issued", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(crate) async fn assign<S: Store>(
    context: Context<S>,
    Series(entry): Series,
    sender: Sender,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    if is_lines(&headers) {
        return lines::answer(context, entry, sender, body);
    }
    let body = ask::bytes(body, DOCUMENT_BYTES_MAX, context.body_timeout).await?;
    let request: DocumentRequest = ask::json(&body)?;
    if request.key.is_some() {
        return Err(Problem::new(
            Code::BAD_BODY,
            "the key of a single document is the head's Idempotency-Key",
        ));
    }
    let assigned = sender.number(&context.machine, &entry, &request).await?;
    let status = if assigned.is_new { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(spell_assignment(&assigned))).into_response())
}

pub(super) fn spell_assignment(Assigned { event, number, state, .. }: &Assigned) -> Assignment {
    Assignment { id: number.to_string(), event: event.to_string(), state: state.name().to_owned() }
}

fn is_lines(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"application/x-ndjson") || kind.eq_ignore_ascii_case(b"application/jsonl")
}
