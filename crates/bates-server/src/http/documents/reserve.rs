//! Reservations: numbers for documents that the caller saves itself. A reservation is confirmed before its deadline, or
//! voided.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use bates_api::{Day, DocumentStatus, Reservation, ReservationRequest};
use bates_core::{DocumentAction, DocumentContent, DocumentFilter, ErrorCode, Store};

use super::assign::KeyedCaller;
use super::outbox::apply_action;
use crate::http::permit::Permit;
use crate::http::problem::{JsonResult, Problem, Result};
use crate::http::query::truncate;
use crate::http::request::OptionalJsonBody;
use crate::http::routes::{Context, Path, Series};

const SECONDS_MAX: u64 = 30 * 24 * 60 * 60;

/// Reserve a number for a document that you save yourself
///
/// Confirm the reservation once the document is saved, or void it. A reservation that is not confirmed before its
/// deadline is voided: its number becomes a gap with reason `voided`, and is never issued again.
#[utoipa::path(post, path = "/v1/series/{series}/reservations", tag = "documents",
    params(("series" = String, Path, description = "The name of the series", example = "document"),
        ("Idempotency-Key" = Option<String>, Header, description = "A key chosen by the caller, which identifies this request")),
    request_body(content = Option<ReservationRequest>),
    responses((status = 201, body = Reservation, description = "The number is reserved"),
        (status = 200, body = Reservation, description = "The reservation of an earlier request with the same key"),
        (status = "default", description = "No number was issued", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(crate) async fn reserve_number<S: Store>(
    context: Context<S>,
    Series(entry): Series,
    caller: KeyedCaller,
    OptionalJsonBody(request): OptionalJsonBody<ReservationRequest>,
) -> Result<(StatusCode, Json<Reservation>)> {
    let seconds = request.seconds.unwrap_or(900);
    if !(1..=SECONDS_MAX).contains(&seconds) {
        let detail = format!("seconds is {seconds}; expected 1 to {SECONDS_MAX}");
        return Err(Problem::new(ErrorCode::BAD_COUNT, detail));
    }
    let digest_content = format!(r#"{{"reservation":{seconds}}}"#);
    let key = caller.idempotency(&request.scope, request.date, &digest_content)?;
    let pairs = request.scope.pairs();
    let params = caller.permit.scope(&pairs, request.date.map(Day::date))?;
    let content = DocumentContent::Reservation(Duration::from_secs(seconds));
    let assignment = caller.assign_content(&context.machine, &entry, params, content, key).await?;
    let filter = DocumentFilter { document_id: Some(assignment.document_id), ..DocumentFilter::default() };
    let document = context.machine.documents(filter, None, 1).await?.pop();
    let status = if assignment.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let reservation = Reservation {
        id: assignment.number.into(),
        token: assignment.document_id.to_string(),
        state: assignment.state.name().to_owned(),
        deadline: document.and_then(|document| document.due).map(|due| due.to_string()),
    };
    Ok((status, Json(reservation)))
}

/// Confirm a reservation: its document is saved
#[utoipa::path(post, path = "/v1/reservations/{token}/confirm", tag = "documents",
    params(("token" = String, Path, description = "The token of the reservation")),
    responses((status = 200, body = DocumentStatus), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such reservation, or it was voided")))]
pub(crate) async fn confirm_reservation<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(token): Path<String>,
) -> JsonResult<DocumentStatus> {
    apply_action(&context, &permit, check_token(&token)?, DocumentAction::Confirm).await
}

/// Void a reservation: its document will not be saved
///
/// The number becomes a gap.
#[utoipa::path(post, path = "/v1/reservations/{token}/void", tag = "documents",
    params(("token" = String, Path, description = "The token of the reservation")),
    responses((status = 200, body = DocumentStatus), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such reservation, or it was confirmed")))]
pub(crate) async fn void_reservation<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(token): Path<String>,
) -> JsonResult<DocumentStatus> {
    apply_action(&context, &permit, check_token(&token)?, DocumentAction::Void).await
}

/// Refuses a number in place of the token: other callers may know the number.
fn check_token(token: &str) -> Result<&str> {
    let detail = || format!("{:?} is not the token of a reservation", truncate(token));
    let unknown = |_| Problem::new(ErrorCode::UNKNOWN_DOCUMENT, detail());
    token.parse::<uuid::Uuid>().map(|_| token).map_err(unknown)
}
