//! `…/validate/{id}` and `/v1/ids/{id}`: whether a text is a valid identifier, and which series it belongs to.

use axum::Json;
use bates_api::{Match, Reason, Trace, Verdict};
use bates_core::{ErrorCode, IdentifierMatch, Position, Right, SeriesEntry, Store};

use super::permit::Permit;
use super::problem::{JsonResult, Problem};
use super::query::truncate;
use super::routes::{Context, Path};

/// Validate an identifier
///
/// Checks the structure: the pattern, the check characters and the rejection rules. `/v1/ids/{id}` shows whether an
/// identifier was granted.
#[utoipa::path(get, path = "/v1/series/{series}/validate/{id}", tag = "identifiers",
    params(("series" = String, Path, description = "The name of the series", example = "farmer"),
        ("id" = String, Path, description = "The identifier", example = "548126974596")),
    responses((status = 200, body = Verdict), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series")))]
pub(super) async fn validate_identifier<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path((series, id)): Path<(String, String)>,
) -> JsonResult<Verdict> {
    let verdict = context.series(&series, &permit).await?.series().pattern().validate(&id);
    Ok(Json(Verdict { valid: verdict.is_valid(), reasons: to_api_reasons(&verdict) }))
}

pub(super) fn to_api_reasons(verdict: &bates_pattern::Verdict) -> Vec<Reason> {
    let reasons = verdict.reasons().iter();
    reasons.map(|reason| Reason { code: reason.code().to_owned(), message: reason.to_string() }).collect()
}

/// Trace an identifier to its series, scope and position
///
/// Only callers with the right `operate` see the position of a number of a shuffled series.
#[utoipa::path(get, path = "/v1/ids/{id}", tag = "identifiers",
    params(("id" = String, Path, description = "The identifier", example = "PROJ-9012-1001")),
    responses((status = 200, body = Trace), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "No series can have issued this identifier")))]
pub(super) async fn trace_identifier<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(id): Path<String>,
) -> JsonResult<Trace> {
    let shows_shuffled = permit.permissions().has(Right::Operate);
    let mut matches = Vec::new();
    // Only series and scopes of the caller: the time of an answer must not depend on others.
    for entry in context.visible_series(&permit).iter().filter(|entry| is_in_scopes(&permit, entry, &id)) {
        matches.extend(context.machine.find_in(entry, &id, shows_shuffled).await?.map(to_api_match));
    }
    if matches.is_empty() {
        let detail = format!("{:?} is not an identifier of any series", truncate(&id));
        return Err(Problem::new(ErrorCode::UNKNOWN_ID, detail));
    }
    Ok(Json(Trace { id, matches }))
}

/// Whether a series could have issued the identifier in a scope that the caller may see.
fn is_in_scopes(permit: &Permit, entry: &SeriesEntry, id: &str) -> bool {
    permit.permissions().has_all_scopes()
        || entry.series().pattern().parse(id).is_ok_and(|parsed| {
            let pairs: Vec<(&str, &str)> = parsed.parameters().collect();
            permit.permissions().check_scope(&pairs).is_ok()
        })
}

fn to_api_match(identifier_match: IdentifierMatch) -> Match {
    let IdentifierMatch { entry, parameters, period, position, granted } = identifier_match;
    let series = entry.series().name().to_string();
    let (scope, position) = (parameters.into_iter().collect(), position.map(Position::value));
    Match { series, scope, period, position, granted }
}
