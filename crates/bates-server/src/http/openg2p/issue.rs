//! Identifiers: one, many, and whether a text could be one.

use axum::extract::Extension;
use axum::http::Uri;
use bates_api::Reason;
use bates_core::{By, Code, Numbers, ScopeName, Store};
use serde::Serialize;
use utoipa::ToSchema;

use super::envelope::{Answer, Envelope, Failure, NONE_NOW};
use super::id_type::{self, Named};
use crate::Caller;
use crate::http::ask;
use crate::http::routes::Context;
use crate::http::trace::reasons;

const BATCH_MAX: u64 = 100_000;

/// An identifier.
#[derive(Serialize, ToSchema)]
pub(crate) struct Issued {
    #[schema(example = "5738201964")]
    id: String,
}

/// Identifiers.
#[derive(Serialize, ToSchema)]
pub(crate) struct Batch {
    /// As many as were asked for; fewer where the type is exhausted.
    #[schema(example = json!(["5738201964", "2936450178"]))]
    ids: Vec<String>,
}

/// Whether a text could be an identifier.
#[derive(Serialize, ToSchema)]
pub(crate) struct Validity {
    /// The text.
    #[schema(example = "5738201964")]
    id: String,
    /// Whether nothing speaks against it.
    valid: bool,
    /// Everything that does; not there if nothing does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<Reason>,
}

/// Issue one ID
///
/// 404 `IDG-003`: there is no such type. 410 `IDG-002`: its last ID was issued, for ever. 503 `IDG-001`: none just now;
/// other nodes may hold the last ones, or the store cannot be written.
#[utoipa::path(post, path = "/{id_type}/id", tag = "openg2p",
    params(("id_type" = String, Path, description = "The ID type, a series", example = "farmer")),
    responses((status = 200, body = Envelope<Issued>),
        (status = "default", body = Envelope<Issued>, description = "No ID was issued; `errors` tells why")))]
pub(crate) async fn issue<S: Store>(
    context: Context<S>,
    Extension(caller): Extension<Caller>,
    named: Named,
) -> Result<Answer<Issued>, Failure> {
    let ids = ids(&context, &named, 1, &caller).await?;
    let id = ids.into_iter().next().ok_or_else(|| Failure::new(NONE_NOW, "nothing was issued"))?;
    Ok(Answer(Issued { id }))
}

/// Issue many IDs
///
/// Beyond the contract of the id-generator. Errors as for one.
#[utoipa::path(post, path = "/{id_type}/ids", tag = "openg2p",
    params(("id_type" = String, Path, description = "The ID type, a series", example = "farmer"),
        ("count" = u64, Query, description = "How many, up to 100,000", minimum = 1, maximum = 100_000)),
    responses((status = 200, body = Envelope<Batch>),
        (status = "default", body = Envelope<Batch>, description = "No ID was issued; `errors` tells why")))]
pub(crate) async fn batch<S: Store>(
    context: Context<S>,
    Extension(caller): Extension<Caller>,
    named: Named,
    uri: Uri,
) -> Result<Answer<Batch>, Failure> {
    let count = count(uri.query().unwrap_or_default())?;
    Ok(Answer(Batch { ids: ids(&context, &named, count, &caller).await? }))
}

async fn ids<S: Store>(
    context: &Context<S>,
    named: &Named,
    count: u64,
    caller: &Caller,
) -> Result<Vec<String>, Failure> {
    let entry = id_type::named(context, &named.id_type).await?;
    let by = By::http(caller.who());
    let numbers: Numbers = context.machine.next(&entry, ScopeName::default(), count, by).await?;
    Ok(numbers.iter().map(|(_, number)| number.to_owned()).collect())
}

fn count(query: &str) -> Result<u64, Failure> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let value = match (pairs.next(), pairs.next()) {
        (Some((name, value)), None) if name == "count" => value,
        _ => return Err(Failure::of(Code::BAD_ARGUMENTS, "ask with ?count=n, and nothing else")),
    };
    let bad = || Failure::of(Code::BAD_COUNT, format!("a count is a whole number from 1 to {BATCH_MAX}"));
    ask::whole(&value).filter(|count| (1..=BATCH_MAX).contains(count)).ok_or_else(bad)
}

/// Judge a text
///
/// About structure: length, check digit and rules. Not whether it was issued.
#[utoipa::path(get, path = "/{id_type}/id/validate/{id}", tag = "openg2p",
    params(("id_type" = String, Path, description = "The ID type, a series", example = "farmer"),
        ("id" = String, Path, description = "1 to 32 digits", example = "548126974596")),
    responses((status = 200, body = Envelope<Validity>),
        (status = "default", body = Envelope<Validity>, description = "There is no such type, or the text is no digits")))]
pub(crate) async fn validate<S: Store>(
    context: Context<S>,
    Named { id_type, id }: Named,
) -> Result<Answer<Validity>, Failure> {
    let verdict = id_type::named(&context, &id_type).await?.series().pattern().validate(&id);
    Ok(Answer(Validity { id, valid: verdict.is_valid(), reasons: reasons(&verdict) }))
}
