//! `GET /v1/documents/{id}`: what became of a document.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use bates_api::KnownDocument;
use bates_core::{Code, Document, Filter, Store};
use uuid::Uuid;

use crate::http::problem::Problem;
use crate::http::query::{self, cut};
use crate::http::routes::{self, Context, Path};

/// See what became of a document
///
/// By its number or its event id. A number that several documents have, in scopes that the pattern does not show,
/// is told apart by `series`, or by the event id.
#[utoipa::path(get, path = "/v1/documents/{id}", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id", example = "PROJ-9012-1001"),
        ("series" = Option<String>, Query, description = "The series that the number is of")),
    responses((status = 200, body = KnownDocument), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such document")))]
pub(in crate::http) async fn document<S: Store>(
    State(context): State<Context<S>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<KnownDocument>, Problem> {
    let mut series = None;
    for (name, value) in query::pairs(&uri) {
        match &*name {
            "series" => series = Some(routes::name(&value)?),
            _ => return Err(query::refuse("the query may have series")),
        }
    }
    let filter = Filter { series, ..which(&id) };
    let mut found = context.machine.documents(filter, None, 2).await?;
    match (found.pop(), found.pop()) {
        (Some(document), None) => Ok(Json(spell_document(&document))),
        (None, _) => Err(unknown(&id)),
        (Some(_), Some(_)) => {
            Err(Problem::new(Code::AMBIGUOUS_NUMBER, format!("several documents have the number {id:?}")))
        }
    }
}

fn which(id: &str) -> Filter {
    match id.parse::<Uuid>() {
        Ok(event) => Filter { event: Some(event), ..Filter::default() },
        Err(_) => Filter { number: Some(id.into()), ..Filter::default() },
    }
}

/// The only document of a number or an event id.
pub(super) async fn event_of<S: Store>(context: &Context<S>, id: &str) -> Result<Uuid, Problem> {
    if let Ok(event) = id.parse() {
        return Ok(event);
    }
    match &*context.machine.documents(which(id), None, 2).await? {
        [Document { event, .. }] => Ok(*event),
        [] => Err(unknown(id)),
        _ => Err(Problem::new(Code::AMBIGUOUS_NUMBER, format!("several documents have the number {id:?}"))),
    }
}

pub(super) fn unknown(id: &str) -> Problem {
    Problem::new(Code::UNKNOWN_DOCUMENT, format!("there is no document {:?}", cut(id)))
}

/// A document as it is answered.
pub(super) fn spell_document(document: &Document) -> KnownDocument {
    let (scope, period) = query::spell_scope(&document.place.scope);
    KnownDocument {
        id: document.number.to_string(),
        event: document.event.to_string(),
        series: document.place.series.to_string(),
        scope,
        period,
        position: document.position,
        state: document.state.name().to_owned(),
        tries: document.tries,
        last_error: document.last_error.as_deref().map(str::to_owned),
        created: document.created.to_string(),
        updated: document.updated.to_string(),
        due: document.due.map(|due| due.to_string()),
        in_doubt: document.in_doubt,
    }
}
