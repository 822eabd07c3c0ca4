//! `/v1/outbox`: documents that are not delivered yet, or never will be, and what somebody decides about them.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use bates_api::{DecisionCount, KnownDocument, OutboxCounts, OutboxPage};
use bates_core::{Code, Decided, Decision, Document, Filter, State as DocumentState, Store};

use super::look::{event_of, spell_document, unknown};
use crate::http::problem::Problem;
use crate::http::query::{self, ListQuery};
use crate::http::routes::{self, Context, Path};

/// What a query asks for.
fn filter(query: &ListQuery) -> Result<Filter, Problem> {
    let mut filter = Filter::default();
    for (name, value) in &query.rest {
        match &**name {
            "series" => filter.series = Some(routes::name(value)?),
            "state" => filter.state = Some(state(value)?),
            _ => return Err(query::refuse("the query may have series, state, after and limit")),
        }
    }
    Ok(filter)
}

fn state(text: &str) -> Result<DocumentState, Problem> {
    DocumentState::named(text).ok_or_else(|| {
        let known = DocumentState::ALL.map(DocumentState::name).join(", ");
        query::refuse(format!("there is no such state; there is {known}"))
    })
}

/// List documents
#[utoipa::path(get, path = "/v1/outbox", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only those of this series"),
        ("state" = Option<String>, Query, description = "Only those in this state", example = "dead"),
        ("after" = Option<String>, Query, description = "The `after` of the page before"),
        ("limit" = Option<usize>, Query, description = "How many; 100 unless said, at most 1,000")),
    responses((status = 200, body = OutboxPage), (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(in crate::http) async fn outbox<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<OutboxPage>, Problem> {
    let query = ListQuery::of(&uri, query::SMALL)?;
    let after = query.after(|after| after.parse().ok())?;
    let found = context.machine.documents(filter(&query)?, after, query.limit).await?;
    let after = query.next(&found, |document| document.event.to_string());
    Ok(Json(OutboxPage { documents: found.iter().map(spell_document).collect(), after }))
}

/// Count documents by series and state
#[utoipa::path(get, path = "/v1/outbox/counts", tag = "documents",
    responses((status = 200, body = BTreeMap<String, BTreeMap<String, u64>>, description = "How many of each series are in each state"),
        (status = "default", body = Problem, content_type = "application/problem+json", description = "The store fails")))]
pub(in crate::http) async fn counts<S: Store>(
    State(context): State<Context<S>>,
) -> Result<Json<OutboxCounts>, Problem> {
    let mut counts = OutboxCounts::new();
    for (series, state, count) in context.machine.tally().await? {
        counts.entry(series.to_string()).or_default().insert(state.name().to_owned(), count);
    }
    Ok(Json(counts))
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
    responses((status = 200, body = DecisionCount), (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(in crate::http) async fn retry_all<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<DecisionCount>, Problem> {
    decide_all(&context, &uri, Decision::Retry).await
}

/// Give up all dead documents, or those of a series
#[utoipa::path(post, path = "/v1/outbox/abandon", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only those of this series")),
    responses((status = 200, body = DecisionCount), (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(in crate::http) async fn abandon_all<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<DecisionCount>, Problem> {
    decide_all(&context, &uri, Decision::Abandon).await
}

/// Only dead ones: whoever means all of them hardly means those that are on their way.
async fn decide_all<S: Store>(
    context: &Context<S>,
    uri: &Uri,
    decision: Decision,
) -> Result<Json<DecisionCount>, Problem> {
    let filter = filter(&ListQuery::of(uri, query::SMALL)?)?;
    if filter.state.is_some_and(|state| state != DocumentState::Dead) {
        return Err(query::refuse("only dead documents are decided about together"));
    }
    let filter = Filter { state: Some(DocumentState::Dead), ..filter };
    Ok(Json(DecisionCount { count: context.machine.decide_all(filter, decision).await? }))
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
        Decided::Done(document) => Ok(Json(spell_document(&document))),
        Decided::Refused(document) => {
            let (id, state) = (&document.number, document.state);
            let detail = format!("{id:?} is {state} already: that cannot be changed");
            Err(Problem::new(Code::WRONG_STATE, detail))
        }
        Decided::UnderWay(document) => Err(under_way(&document)),
        Decided::Unknown => Err(unknown(id)),
    }
}
