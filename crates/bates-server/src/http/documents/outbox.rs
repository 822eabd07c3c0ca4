//! `/v1/outbox`: documents that are not delivered yet, or never will be, and what somebody decides about them.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use bates_core::{Code, Decided, Decision, Document, Filter, SeriesName, State as DocumentState, Store};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::look::{event_of, unknown};
use super::shape::KnownDocument;
use crate::http::problem::Problem;
use crate::http::routes::{self, Context, Path};

/// Documents on one page, unless fewer are asked for.
const PAGE: usize = 100;

/// The most that may be asked for.
const PAGE_MAX: usize = 1_000;

/// Some documents, by their event ids.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Documents {
    /// The documents.
    documents: Vec<KnownDocument>,
    /// Give this as `after` to see those behind them; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// About how many documents was decided.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Count {
    /// How many.
    count: u64,
}

/// What a query asks for.
struct Asked {
    filter: Filter,
    after: Option<Uuid>,
    limit: usize,
}

impl Asked {
    fn of(uri: &Uri) -> Result<Self, Problem> {
        let mut asked = Self { filter: Filter::default(), after: None, limit: PAGE };
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            match &*name {
                "series" => asked.filter.series = Some(routes::name(&value)?),
                "state" => asked.filter.state = Some(state(&value)?),
                "after" => {
                    let bad = |_| Problem::new(Code::BAD_ARGUMENTS, "after is no event id");
                    asked.after = Some(value.parse().map_err(bad)?);
                }
                "limit" => match value.parse() {
                    Ok(given @ 1..=PAGE_MAX) => asked.limit = given,
                    _ => return Err(Problem::new(Code::BAD_COUNT, format!("limit is 1 to {PAGE_MAX}"))),
                },
                _ => {
                    let detail = "the query may have series, state, after and limit";
                    return Err(Problem::new(Code::BAD_ARGUMENTS, detail));
                }
            }
        }
        Ok(asked)
    }
}

fn state(text: &str) -> Result<DocumentState, Problem> {
    DocumentState::named(text).ok_or_else(|| {
        let known = DocumentState::ALL.map(DocumentState::name).join(", ");
        Problem::new(Code::BAD_ARGUMENTS, format!("there is no such state; there is {known}"))
    })
}

/// List documents
#[utoipa::path(get, path = "/v1/outbox", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only those of this series"),
        ("state" = Option<String>, Query, description = "Only those in this state", example = "dead"),
        ("after" = Option<String>, Query, description = "The `after` of the page before"),
        ("limit" = Option<usize>, Query, description = "How many; 100 unless said, at most 1,000")),
    responses((status = 200, body = Documents), (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(in crate::http) async fn outbox<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<Documents>, Problem> {
    let Asked { filter, after, limit } = Asked::of(&uri)?;
    let found = context.machine.documents(filter, after, limit).await?;
    let after = found.last().filter(|_| found.len() == limit).map(|document| document.event.to_string());
    Ok(Json(Documents { documents: found.iter().map(KnownDocument::of).collect(), after }))
}

/// Count documents by series and state
#[utoipa::path(get, path = "/v1/outbox/counts", tag = "documents",
    responses((status = 200, body = BTreeMap<String, BTreeMap<String, u64>>, description = "How many of each series are in each state"),
        (status = "default", body = Problem, content_type = "application/problem+json", description = "The store fails")))]
pub(in crate::http) async fn counts<S: Store>(
    State(context): State<Context<S>>,
) -> Result<Json<BTreeMap<SeriesText, BTreeMap<&'static str, u64>>>, Problem> {
    let mut counts: BTreeMap<SeriesText, BTreeMap<&'static str, u64>> = BTreeMap::new();
    for (series, state, count) in context.machine.tally().await? {
        counts.entry(SeriesText::of(&series)).or_default().insert(state.name(), count);
    }
    Ok(Json(counts))
}

/// The name of a series, as a key.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(in crate::http) struct SeriesText(String);

impl SeriesText {
    fn of(series: &SeriesName) -> Self {
        Self(series.to_string())
    }
}

/// Deliver a dead document after all, or a pending one at once
#[utoipa::path(post, path = "/v1/outbox/{id}/retry", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id")),
    responses((status = 200, body = KnownDocument), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such document, or it is neither dead nor pending")))]
pub(in crate::http) async fn retry<S: Store>(
    State(context): State<Context<S>>,
    Path(id): Path<String>,
) -> Result<Json<KnownDocument>, Problem> {
    decide(&context, &id, Decision::Retry).await
}

/// Give up a document: its number is a gap from now on
#[utoipa::path(post, path = "/v1/outbox/{id}/abandon", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id")),
    responses((status = 200, body = KnownDocument), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such document, it is neither dead nor pending, or it is being delivered just now")))]
pub(in crate::http) async fn abandon<S: Store>(
    State(context): State<Context<S>>,
    Path(id): Path<String>,
) -> Result<Json<KnownDocument>, Problem> {
    decide(&context, &id, Decision::Abandon).await
}

/// Deliver all dead documents after all, or those of a series
#[utoipa::path(post, path = "/v1/outbox/retry", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only those of this series")),
    responses((status = 200, body = Count), (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(in crate::http) async fn retry_all<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<Count>, Problem> {
    decide_all(&context, &uri, Decision::Retry).await
}

/// Give up all dead documents, or those of a series
#[utoipa::path(post, path = "/v1/outbox/abandon", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only those of this series")),
    responses((status = 200, body = Count), (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(in crate::http) async fn abandon_all<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<Count>, Problem> {
    decide_all(&context, &uri, Decision::Abandon).await
}

/// Only dead ones: whoever means all of them hardly means those that are on their way.
async fn decide_all<S: Store>(
    context: &Context<S>,
    uri: &Uri,
    decision: Decision,
) -> Result<Json<Count>, Problem> {
    let Asked { filter, .. } = Asked::of(uri)?;
    if filter.state.is_some_and(|state| state != DocumentState::Dead) {
        return Err(Problem::new(Code::BAD_ARGUMENTS, "only dead documents are decided about together"));
    }
    let filter = Filter { state: Some(DocumentState::Dead), ..filter };
    Ok(Json(Count { count: context.machine.decide_all(filter, decision).await? }))
}

fn under_way(document: &Document) -> Problem {
    let until = document.due.map_or_else(|| "now".to_owned(), |due| due.to_string());
    let detail = format!(
        "{:?} is being delivered and may arrive: its claim ends at {until} at the latest; try again when the delivery \
         has ended",
        document.number
    );
    Problem::new(Code::DELIVERY_UNDER_WAY, detail)
}

pub(super) async fn decide<S: Store>(
    context: &Context<S>,
    id: &str,
    decision: Decision,
) -> Result<Json<KnownDocument>, Problem> {
    let event = event_of(context, id).await?;
    match context.machine.decide(event, decision).await? {
        Decided::Done(document) => Ok(Json(KnownDocument::of(&document))),
        Decided::Refused(document) => {
            let (id, state) = (&document.number, document.state);
            let detail = format!("{id:?} is {state} already: that cannot be changed");
            Err(Problem::new(Code::WRONG_STATE, detail))
        }
        Decided::UnderWay(document) => Err(under_way(&document)),
        Decided::Unknown => Err(unknown(id)),
    }
}
