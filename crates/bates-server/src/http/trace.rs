//! `…/validate/{id}` and `/v1/ids/{id}`: what an identifier is, and what speaks against it.

use axum::Json;
use bates_api::{Match, Reason, Trace, Verdict};
use bates_core::{Code, Found, Store};

use super::problem::{Answer, Problem};
use super::routes::{Context, Path};

/// Judge a text
///
/// About structure: shape, check characters and rules. Whether it was granted is a question to `/v1/ids/{id}`.
#[utoipa::path(get, path = "/v1/series/{series}/validate/{id}", tag = "identifiers",
    params(("series" = String, Path, description = "The name of a series", example = "farmer"),
        ("id" = String, Path, description = "The text", example = "548126974596")),
    responses((status = 200, body = Verdict), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series")))]
pub(super) async fn validate<S: Store>(
    context: Context<S>,
    Path((series, id)): Path<(String, String)>,
) -> Answer<Verdict> {
    let verdict = context.series(&series).await?.series().pattern().validate(&id);
    Ok(Json(Verdict { valid: verdict.is_valid(), reasons: reasons(&verdict) }))
}

pub(super) fn reasons(verdict: &bates_pattern::Verdict) -> Vec<Reason> {
    let reasons = verdict.reasons().iter();
    reasons.map(|reason| Reason { code: reason.code().to_owned(), message: reason.to_string() }).collect()
}

/// Trace an identifier to its series, scope and position
#[utoipa::path(get, path = "/v1/ids/{id}", tag = "identifiers",
    params(("id" = String, Path, description = "The identifier", example = "PROJ-9012-1001")),
    responses((status = 200, body = Trace), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "It is no identifier of any series")))]
pub(super) async fn find<S: Store>(context: Context<S>, Path(id): Path<String>) -> Answer<Trace> {
    let matches: Vec<Match> = context.machine.find(&id).await?.into_iter().map(spell_match).collect();
    if matches.is_empty() {
        return Err(Problem::new(Code::UNKNOWN_ID, "the text is no identifier of any series"));
    }
    Ok(Json(Trace { id, matches }))
}

fn spell_match(found: Found) -> Match {
    let Found { entry, parameters, period, position, granted } = found;
    let series = entry.series().name().to_string();
    let (scope, position) = (parameters.into_iter().collect(), position.value());
    Match { series, scope, period, position, granted }
}
