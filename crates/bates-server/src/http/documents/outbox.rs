//! `/v1/documents/{id}` and `/v1/outbox`: what became of documents, and decisions about them.

use axum::Json;
use axum::http::Uri;
use bates_api::{DecisionCount, KnownDocument, OutboxCounts, OutboxPage};
use bates_core::{Code, Decided, Decision, Document, Filter, SeriesName, State as DocumentState, Store};
use uuid::Uuid;

use crate::http::problem::{Answer, Problem};
use crate::http::query::{self, ListQuery, cut};
use crate::http::routes::{Context, Path};

/// See what became of a document
///
/// By its number or its event id. A number that several documents have, in scopes that the pattern does not show,
/// is told apart by `series`, or by the event id.
#[utoipa::path(get, path = "/v1/documents/{id}", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id", example = "PROJ-9012-1001"),
        ("series" = Option<String>, Query, description = "The series that the number is of")),
    responses((status = 200, body = KnownDocument), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such document")))]
pub(crate) async fn document<S: Store>(
    context: Context<S>,
    Path(id): Path<String>,
    uri: Uri,
) -> Answer<KnownDocument> {
    let document = find(&context, &id, query::only_series(&uri)?).await?;
    Ok(Json(spell_document(&document)))
}

async fn find<S: Store>(
    context: &Context<S>,
    id: &str,
    series: Option<SeriesName>,
) -> Result<Document, Problem> {
    let event: Option<Uuid> = id.parse().ok();
    let number = event.is_none().then(|| id.into());
    let filter = Filter { series, event, number, ..Filter::default() };
    let mut found = context.machine.documents(filter, None, 2).await?;
    match (found.pop(), found.pop()) {
        (Some(document), None) => Ok(document),
        (None, _) => Err(unknown(id)),
        (Some(_), Some(_)) => {
            Err(Problem::new(Code::AMBIGUOUS_NUMBER, format!("several documents have the number {id:?}")))
        }
    }
}

fn unknown(id: &str) -> Problem {
    Problem::new(Code::UNKNOWN_DOCUMENT, format!("there is no document {:?}", cut(id)))
}

fn spell_document(document: &Document) -> KnownDocument {
    let (scope, period) = query::spell_scope(&document.place.scope);
    KnownDocument {
        id: document.number.to_string(),
        event: document.event.to_string(),
        series: document.place.series.to_string(),
        scope,
        period,
        position: document.position.value(),
        state: document.state.name().to_owned(),
        tries: document.tries,
        last_error: document.last_error.as_deref().map(str::to_owned),
        created: document.created.to_string(),
        updated: document.updated.to_string(),
        due: document.due.map(|due| due.to_string()),
        in_doubt: document.in_doubt,
    }
}

fn filter(query: &mut ListQuery) -> Result<Filter, Problem> {
    let (series, state) = (query.take_series()?, query.take("state", state)?);
    query.check_rest(|_| "the query may have series, state, after and limit".to_owned())?;
    Ok(Filter { series, state, ..Filter::default() })
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
    responses((status = 200, body = OutboxPage), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(crate) async fn outbox<S: Store>(context: Context<S>, uri: Uri) -> Answer<OutboxPage> {
    let mut query = ListQuery::of(&uri, query::SMALL)?;
    let after = query.after(|after| after.parse().ok())?;
    let found = context.machine.documents(filter(&mut query)?, after, query.limit).await?;
    let after = query.next(&found, |document| document.event.to_string());
    Ok(Json(OutboxPage { documents: found.iter().map(spell_document).collect(), after }))
}

/// Count documents by series and state
#[utoipa::path(get, path = "/v1/outbox/counts", tag = "documents",
    responses((status = 200, body = BTreeMap<String, BTreeMap<String, u64>>, description = "How many of each series are in each state"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The store fails")))]
pub(crate) async fn counts<S: Store>(context: Context<S>) -> Answer<OutboxCounts> {
    let mut counts = OutboxCounts::new();
    for (series, state, count) in context.machine.tally().await? {
        counts.entry(series.to_string()).or_default().insert(state.name().to_owned(), count);
    }
    Ok(Json(counts))
}

/// Deliver a dead document after all, or a pending one at once
#[utoipa::path(post, path = "/v1/outbox/{id}/retry", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id")),
    responses((status = 200, body = KnownDocument), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such document, or it is neither dead nor pending")))]
pub(crate) async fn retry<S: Store>(context: Context<S>, Path(id): Path<String>) -> Answer<KnownDocument> {
    decide(&context, &id, Decision::Retry).await
}

/// Give up a document: its number is a gap from now on
#[utoipa::path(post, path = "/v1/outbox/{id}/abandon", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id")),
    responses((status = 200, body = KnownDocument), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such document, it is neither dead nor pending, or it is being delivered just now")))]
pub(crate) async fn abandon<S: Store>(context: Context<S>, Path(id): Path<String>) -> Answer<KnownDocument> {
    decide(&context, &id, Decision::Abandon).await
}

/// Deliver all dead documents after all, or those of a series
#[utoipa::path(post, path = "/v1/outbox/retry", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only those of this series")),
    responses((status = 200, body = DecisionCount), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(crate) async fn retry_all<S: Store>(context: Context<S>, uri: Uri) -> Answer<DecisionCount> {
    decide_all(&context, &uri, Decision::Retry).await
}

/// Give up all dead documents, or those of a series
#[utoipa::path(post, path = "/v1/outbox/abandon", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only those of this series")),
    responses((status = 200, body = DecisionCount), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(crate) async fn abandon_all<S: Store>(context: Context<S>, uri: Uri) -> Answer<DecisionCount> {
    decide_all(&context, &uri, Decision::Abandon).await
}

/// Only dead ones, not those that are on their way.
async fn decide_all<S: Store>(context: &Context<S>, uri: &Uri, decision: Decision) -> Answer<DecisionCount> {
    let filter = filter(&mut ListQuery::of(uri, query::SMALL)?)?;
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
) -> Answer<KnownDocument> {
    let event = match id.parse() {
        Ok(event) => event,
        Err(_) => find(context, id, None).await?.event,
    };
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
