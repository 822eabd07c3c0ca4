//! Reservations: a number for a document that the caller saves, confirmed within a time or voided.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use bates_api::{KnownDocument, Reservation, ReservationRequest};
use bates_core::{Code, Content, Decision, Filter, Store};

use super::assign::Sender;
use super::outbox::decide;
use crate::http::ask::{self, AskOrDefault};
use crate::http::problem::{Answer, Problem};
use crate::http::routes::{Context, Path, Series};

const SECONDS_MAX: u64 = 30 * 24 * 60 * 60;

/// Reserve a number for a document that you save yourself
///
/// Confirm it once the document is saved, or void it. What is not confirmed in time is voided: a gap with that reason,
/// and never given again.
#[utoipa::path(post, path = "/v1/series/{series}/reservations", tag = "documents",
    params(("series" = String, Path, description = "The name of a series", example = "document"),
        ("Idempotency-Key" = Option<String>, Header, description = "What the caller calls this request")),
    request_body(content = Option<ReservationRequest>),
    responses((status = 201, body = Reservation, description = "It is reserved"),
        (status = 200, body = Reservation, description = "The same request had this number already"),
        (status = "default", description = "No number was issued", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(crate) async fn reserve<S: Store>(
    context: Context<S>,
    Series(entry): Series,
    sender: Sender,
    AskOrDefault(ask): AskOrDefault<ReservationRequest>,
) -> Result<(StatusCode, Json<Reservation>), Problem> {
    let seconds = ask.seconds.unwrap_or(900);
    if !(1..=SECONDS_MAX).contains(&seconds) {
        let detail = format!("a reservation lasts {seconds} seconds; it may be 1 to {SECONDS_MAX}");
        return Err(Problem::new(Code::BAD_COUNT, detail));
    }
    let content = format!(r#"{{"reservation":{seconds}}}"#);
    let key = sender.idempotency(&ask.scope, ask.date, &content)?;
    let parameters: Vec<_> = ask.scope.iter().collect();
    let lasts = Content::Reservation(Duration::from_secs(seconds));
    let name = ask::name(&parameters, ask.date);
    let assigned = context.machine.assign(&entry, name, lasts, key, sender.caller.who()).await?;
    let filter = Filter { event: Some(assigned.event), ..Filter::default() };
    let kept = context.machine.documents(filter, None, 1).await?.pop();
    let status = if assigned.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let reservation = Reservation {
        id: assigned.number.into(),
        token: assigned.event.to_string(),
        state: assigned.state.name().to_owned(),
        deadline: kept.and_then(|kept| kept.due).map(|due| due.to_string()),
    };
    Ok((status, Json(reservation)))
}

/// The document of a reservation is saved
#[utoipa::path(post, path = "/v1/reservations/{token}/confirm", tag = "documents",
    params(("token" = String, Path, description = "The token of the reservation")),
    responses((status = 200, body = KnownDocument), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such reservation, or it was voided")))]
pub(crate) async fn confirm<S: Store>(
    context: Context<S>,
    Path(token): Path<String>,
) -> Answer<KnownDocument> {
    decide(&context, by_token(&token)?, Decision::Confirm).await
}

/// The document of a reservation will not be saved: its number is a gap from now on
#[utoipa::path(post, path = "/v1/reservations/{token}/void", tag = "documents",
    params(("token" = String, Path, description = "The token of the reservation")),
    responses((status = 200, body = KnownDocument), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such reservation, or it was confirmed")))]
pub(crate) async fn void<S: Store>(context: Context<S>, Path(token): Path<String>) -> Answer<KnownDocument> {
    decide(&context, by_token(&token)?, Decision::Void).await
}

/// A number is no token: others may know it.
fn by_token(token: &str) -> Result<&str, Problem> {
    let unknown = |_| Problem::new(Code::UNKNOWN_DOCUMENT, "this is no token of a reservation");
    token.parse::<uuid::Uuid>().map(|_| token).map_err(unknown)
}
