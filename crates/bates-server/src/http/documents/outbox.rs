//! `/v1/documents/{id}` and `/v1/outbox`: the status of documents, and actions on them.

use axum::Json;
use axum::http::Uri;
use bates_api::{DecisionCount, DocumentStatus, OutboxCounts, OutboxPage};
use bates_core::{
    ActionOutcome, Document, DocumentAction, DocumentFilter, DocumentState, ErrorCode, LeaseOwner,
    SeriesName, Store,
};
use uuid::Uuid;

use crate::http::permit::Permit;
use crate::http::problem::{JsonResult, Problem, Result};
use crate::http::query::{self, ListQuery, truncate};
use crate::http::routes::{Context, Path};

/// Show the status of a document
///
/// Finds it by its number or its event id. If several documents have the number, in scopes that the pattern does not
/// show, add `series` or use the event id.
#[utoipa::path(get, path = "/v1/documents/{id}", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id", example = "PROJ-9012-1001"),
        ("series" = Option<String>, Query, description = "The series of the number")),
    responses((status = 200, body = DocumentStatus), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such document")))]
pub(crate) async fn find_document<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(id): Path<String>,
    uri: Uri,
) -> JsonResult<DocumentStatus> {
    let series = query::parse_only_series(&uri)?;
    series.as_ref().map_or(Ok(()), |name| permit.check_series(name))?;
    let document = find_only(&context, &permit, &id, series).await?;
    Ok(Json(to_api_status(&context, &permit, &document)))
}

/// The document with this number or event id; more than one is an error.
async fn find_only<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    id: &str,
    series: Option<SeriesName>,
) -> Result<Document> {
    let document_id: Option<Uuid> = id.parse().ok();
    let number = document_id.is_none().then(|| id.into());
    let among = permit.permissions().series().clone();
    let filter = DocumentFilter { among, series, document_id, number, ..DocumentFilter::default() };
    let mut documents = documents(context, permit, &filter, None, 2).await?;
    match (documents.pop(), documents.pop()) {
        (Some(document), None) => Ok(document),
        (None, _) => Err(unknown_document(id)),
        (Some(_), Some(_)) => Err(Problem::new(
            ErrorCode::AMBIGUOUS_NUMBER,
            format!("several documents have the number {id:?}: add the series, or use the event id"),
        )),
    }
}

/// The documents that match, in scopes that the caller may see.
async fn documents<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    filter: &DocumentFilter,
    after: Option<Uuid>,
    limit: usize,
) -> Result<Vec<Document>> {
    let fetch = |after, limit| context.machine.documents(filter.clone(), after, limit);
    let documents =
        permit.page(limit, after, fetch, |document| document.id, |document| &document.scope_id.scope);
    Ok(documents.await?)
}

fn unknown_document(id: &str) -> Problem {
    Problem::new(ErrorCode::UNKNOWN_DOCUMENT, format!("there is no document {:?}", truncate(id)))
}

fn to_api_status<S: Store>(context: &Context<S>, permit: &Permit, document: &Document) -> DocumentStatus {
    let shows_positions = context.shows_positions(permit, &document.scope_id.series);
    let (scope, period) = query::to_api_scope(&document.scope_id.scope);
    DocumentStatus {
        id: document.number.to_string(),
        event: document.id.to_string(),
        series: document.scope_id.series.to_string(),
        scope,
        period,
        position: shows_positions.then(|| document.position.value()),
        state: document.state.name().to_owned(),
        tries: document.attempts,
        last_error: document.last_error.as_deref().map(str::to_owned),
        created: document.created.to_string(),
        updated: document.updated.to_string(),
        due: document.due.map(|due| due.to_string()),
        in_doubt: document.in_doubt,
    }
}

async fn parse_filter<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    query: &mut ListQuery,
) -> Result<DocumentFilter> {
    let series = query.take_listed_series(&context.machine, permit).await?;
    let state = query.take("state", parse_state)?;
    query.check_rest(&["series", "state", "after", "limit"])?;
    let among = permit.permissions().series().clone();
    Ok(DocumentFilter { among, series, state, ..DocumentFilter::default() })
}

fn parse_state(text: &str) -> Result<DocumentState> {
    DocumentState::from_name(text).ok_or_else(|| {
        let states = DocumentState::ALL.map(DocumentState::name).join(", ");
        query::bad_value("state", text, &format!("is not a state: expected one of {states}"))
    })
}

/// List documents
#[utoipa::path(get, path = "/v1/outbox", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only documents of this series"),
        ("state" = Option<String>, Query, description = "Only documents in this state", example = "dead"),
        ("after" = Option<String>, Query, description = "The `after` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "The maximum number of documents: 1 to 1,000, by default 100")),
    responses((status = 200, body = OutboxPage), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid, or the store failed")))]
pub(crate) async fn list_documents<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
) -> JsonResult<OutboxPage> {
    let mut query = ListQuery::parse(&uri, query::SMALL_PAGE)?;
    let after = query.after(|after| after.parse().ok())?;
    let filter = parse_filter(&context, &permit, &mut query).await?;
    let documents = documents(&context, &permit, &filter, after, query.limit).await?;
    let after = query.next_after(&documents, |document| document.id.to_string());
    let documents = documents.iter().map(|document| to_api_status(&context, &permit, document)).collect();
    Ok(Json(OutboxPage { documents, after }))
}

/// Count documents by series and state
#[utoipa::path(get, path = "/v1/outbox/counts", tag = "documents",
    responses((status = 200, body = BTreeMap<String, BTreeMap<String, u64>>, description = "The number of documents by series and state"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The store failed")))]
pub(crate) async fn count_documents<S: Store>(
    context: Context<S>,
    permit: Permit,
) -> JsonResult<OutboxCounts> {
    let mut counts = OutboxCounts::new();
    let all = context.machine.count_documents().await?;
    for (series, state, count) in all.into_iter().filter(|(series, ..)| permit.sees_all_of(series)) {
        counts.entry(series.to_string()).or_default().insert(state.name().to_owned(), count);
    }
    Ok(Json(counts))
}

/// Deliver a dead or pending document now
#[utoipa::path(post, path = "/v1/outbox/{id}/retry", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id")),
    responses((status = 200, body = DocumentStatus), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such document, or it is neither dead nor pending")))]
pub(crate) async fn retry_document<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(id): Path<String>,
) -> JsonResult<DocumentStatus> {
    apply_action(&context, &permit, &id, DocumentAction::Retry).await
}

/// Abandon a dead or pending document
///
/// The server no longer tries to deliver it, and its number becomes a gap.
#[utoipa::path(post, path = "/v1/outbox/{id}/abandon", tag = "documents",
    params(("id" = String, Path, description = "The number or the event id")),
    responses((status = 200, body = DocumentStatus), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such document, it is neither dead nor pending, or it is being delivered")))]
pub(crate) async fn abandon_document<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(id): Path<String>,
) -> JsonResult<DocumentStatus> {
    apply_action(&context, &permit, &id, DocumentAction::Abandon).await
}

/// Deliver all dead documents again
#[utoipa::path(post, path = "/v1/outbox/retry", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only documents of this series")),
    responses((status = 200, body = DecisionCount), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid, or the store failed")))]
pub(crate) async fn retry_dead_documents<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
) -> JsonResult<DecisionCount> {
    apply_action_to_dead(&context, &permit, &uri, DocumentAction::Retry).await
}

/// Abandon all dead documents
#[utoipa::path(post, path = "/v1/outbox/abandon", tag = "documents",
    params(("series" = Option<String>, Query, description = "Only documents of this series")),
    responses((status = 200, body = DecisionCount), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid, or the store failed")))]
pub(crate) async fn abandon_dead_documents<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
) -> JsonResult<DecisionCount> {
    apply_action_to_dead(&context, &permit, &uri, DocumentAction::Abandon).await
}

/// Never touches pending documents, whose delivery may be under way.
async fn apply_action_to_dead<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    uri: &Uri,
    action: DocumentAction,
) -> JsonResult<DecisionCount> {
    permit.permissions().check_all_scopes()?;
    let filter = parse_filter(context, permit, &mut ListQuery::parse(uri, query::SMALL_PAGE)?).await?;
    if let Some(state) = filter.state.filter(|state| *state != DocumentState::Dead) {
        let problem = "cannot be changed together: only dead documents can";
        return Err(query::bad_value("state", state.name(), problem));
    }
    let filter = DocumentFilter { state: Some(DocumentState::Dead), ..filter };
    Ok(Json(DecisionCount {
        count: context.machine.apply_action_to_all(filter, action, permit.actor()).await?,
    }))
}

fn delivery_under_way(document: &Document) -> Problem {
    let until = document.due.map_or_else(|| "now".to_owned(), |due| due.to_string());
    let detail = format!(
        "{:?} is being delivered and may arrive: try again when the delivery has ended, at the latest at {until}",
        document.number
    );
    Problem::new(ErrorCode::DELIVERY_UNDER_WAY, detail)
}

pub(super) async fn apply_action<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    id: &str,
    action: DocumentAction,
) -> JsonResult<DocumentStatus> {
    let owner = match action {
        DocumentAction::Confirm | DocumentAction::Void => permit.caller.lease_owner(),
        DocumentAction::Retry | DocumentAction::Abandon => LeaseOwner::Any,
    };
    let document_id = match id.parse() {
        Ok(document_id) if permit.permissions().is_unlimited() && owner == LeaseOwner::Any => document_id,
        _ => {
            let document = find_only(context, permit, id, None).await?;
            // The reservation of another token does not exist for this one.
            document.is_of(&owner).then_some(document.id).ok_or_else(|| unknown_document(id))?
        }
    };
    match context.machine.apply_action(document_id, action, permit.actor()).await? {
        ActionOutcome::Done(document) => Ok(Json(to_api_status(context, permit, &document))),
        ActionOutcome::Refused(document) => {
            let (number, state) = (&document.number, document.state);
            let detail = format!("{number:?} is already {state}, which cannot be changed");
            Err(Problem::new(ErrorCode::WRONG_STATE, detail))
        }
        ActionOutcome::AttemptUnderWay(document) => Err(delivery_under_way(&document)),
        ActionOutcome::NotFound => Err(unknown_document(id)),
    }
}
