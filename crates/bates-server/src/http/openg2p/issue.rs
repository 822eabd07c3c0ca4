//! Issues one ID or many, and validates IDs.

use axum::http::Uri;
use bates_api::Reason;
use bates_core::{ErrorCode, Numbers, ScopeParams, Store};
use serde::Serialize;
use utoipa::ToSchema;

use super::envelope::{Envelope, Failure, NO_ID_AVAILABLE, Success};
use super::id_type::{self, IdPath};
use crate::http::permit::Permit;
use crate::http::request;
use crate::http::routes::Context;
use crate::http::trace::to_api_reasons;
use crate::series::truncate;

const BATCH_MAX: u64 = 100_000;

/// An ID.
#[derive(Serialize, ToSchema)]
pub(crate) struct IssuedId {
    #[schema(example = "5738201964")]
    id: String,
}

/// Many IDs.
#[derive(Serialize, ToSchema)]
pub(crate) struct IssuedIds {
    /// As many IDs as requested, or fewer if the type is exhausted.
    #[schema(example = json!(["5738201964", "2936450178"]))]
    ids: Vec<String>,
}

/// Whether an ID is valid.
#[derive(Serialize, ToSchema)]
pub(crate) struct IdVerdict {
    /// The ID.
    #[schema(example = "5738201964")]
    id: String,
    /// Whether the ID is valid.
    valid: bool,
    /// Every reason why it is not; absent if it is valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<Reason>,
}

/// Issue one ID
///
/// 404 `IDG-003`: there is no such ID type. 410 `IDG-002`: the type is exhausted, and stays so. 503 `IDG-001`: no ID is
/// available now; other nodes may hold the last ones, or the store cannot be written.
#[utoipa::path(post, path = "/{id_type}/id", tag = "openg2p",
    params(("id_type" = String, Path, description = "The ID type, which is the name of a series", example = "farmer")),
    responses((status = 200, body = Envelope<IssuedId>),
        (status = "default", body = Envelope<IssuedId>, description = "No ID was issued; `errors` says why")))]
pub(crate) async fn issue_id<S: Store>(
    context: Context<S>,
    permit: Permit,
    path: IdPath,
) -> Result<Success<IssuedId>, Failure> {
    let ids = take_ids(&context, &path, 1, &permit).await?;
    let id = ids.into_iter().next().ok_or_else(|| Failure::new(NO_ID_AVAILABLE, "no ID was issued"))?;
    Ok(Success(IssuedId { id }))
}

/// Issue many IDs
///
/// An extension of the id-generator contract. Errors are those of issuing one ID.
#[utoipa::path(post, path = "/{id_type}/ids", tag = "openg2p",
    params(("id_type" = String, Path, description = "The ID type, which is the name of a series", example = "farmer"),
        ("count" = u64, Query, description = "How many IDs, up to 100,000", minimum = 1, maximum = 100_000)),
    responses((status = 200, body = Envelope<IssuedIds>),
        (status = "default", body = Envelope<IssuedIds>, description = "No ID was issued; `errors` says why")))]
pub(crate) async fn issue_ids<S: Store>(
    context: Context<S>,
    permit: Permit,
    path: IdPath,
    uri: Uri,
) -> Result<Success<IssuedIds>, Failure> {
    let count = parse_count(uri.query().unwrap_or_default())?;
    Ok(Success(IssuedIds { ids: take_ids(&context, &path, count, &permit).await? }))
}

async fn take_ids<S: Store>(
    context: &Context<S>,
    path: &IdPath,
    count: u64,
    permit: &Permit,
) -> Result<Vec<String>, Failure> {
    let entry = id_type::find(context, permit, &path.id_type).await?;
    let machine = &context.machine;
    let take = async { Ok(machine.next(&entry, ScopeParams::default(), count, permit.actor()).await?) };
    let got = |numbers: &Numbers| numbers.len() as u64;
    let numbers: Numbers =
        permit.caller.take_within_allowance::<_, _, Failure>(machine, count, take, got).await?;
    Ok(numbers.iter().map(|(_, number)| number.to_owned()).collect())
}

fn parse_count(query: &str) -> Result<u64, Failure> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let value = match (pairs.next(), pairs.next()) {
        (Some((name, value)), None) if name == "count" => value,
        _ => {
            let message = "invalid query: expected ?count=<number> and no other parameter";
            return Err(Failure::with_bates_code(ErrorCode::BAD_ARGUMENTS, message));
        }
    };
    let message =
        || format!("count is {:?}; expected a whole number from 1 to {BATCH_MAX}", truncate(&value));
    let bad_count = || Failure::with_bates_code(ErrorCode::BAD_COUNT, message());
    request::parse_whole(&value).filter(|count| (1..=BATCH_MAX).contains(count)).ok_or_else(bad_count)
}

/// Validate an ID
///
/// Checks the structure: length, check digit and rejection rules. Does not check whether the ID was issued.
#[utoipa::path(get, path = "/{id_type}/id/validate/{id}", tag = "openg2p",
    params(("id_type" = String, Path, description = "The ID type, which is the name of a series", example = "farmer"),
        ("id" = String, Path, description = "1 to 32 digits", example = "548126974596")),
    responses((status = 200, body = Envelope<IdVerdict>),
        (status = "default", body = Envelope<IdVerdict>, description = "There is no such ID type, or the ID has other characters than digits")))]
pub(crate) async fn validate_id<S: Store>(
    context: Context<S>,
    permit: Permit,
    IdPath { id_type, id }: IdPath,
) -> Result<Success<IdVerdict>, Failure> {
    let verdict = id_type::find(&context, &permit, &id_type).await?.series().pattern().validate(&id);
    Ok(Success(IdVerdict { id, valid: verdict.is_valid(), reasons: to_api_reasons(&verdict) }))
}
