//! `…/validate/{id}` and `/v1/ids/{id}`: what an identifier is, and what speaks against it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use bates_core::{Code, Found, Store};
use serde::Serialize;
use utoipa::ToSchema;

use super::problem::Problem;
use super::routes::{Context, Path};

/// Whether a text could be an identifier of a series.
#[derive(Serialize, ToSchema)]
pub(super) struct Verdict {
    /// Whether nothing speaks against it.
    valid: bool,
    /// Everything that does.
    reasons: Vec<Reason>,
}

/// One thing that speaks against a text.
#[derive(Serialize, ToSchema)]
pub(super) struct Reason {
    /// Its stable code.
    #[schema(example = "checksum")]
    code: &'static str,
    /// A sentence.
    message: String,
}

/// What an identifier could be.
#[derive(Serialize, ToSchema)]
pub(super) struct Trace {
    /// The identifier.
    id: String,
    /// Each series that it could be of.
    matches: Vec<Match>,
}

/// A series and scope that an identifier could be of.
#[derive(Serialize, ToSchema)]
pub(super) struct Match {
    /// The series.
    #[schema(example = "document")]
    series: String,
    /// The parameters that the identifier shows.
    #[schema(example = json!({"project": "PROJ", "type": "9012"}))]
    scope: BTreeMap<String, String>,
    /// The period that it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
    /// Its position.
    position: u64,
    /// Whether the position was granted; `null` if the identifier does not show its whole scope.
    granted: Option<bool>,
}

impl From<Found> for Match {
    fn from(found: Found) -> Self {
        let Found { entry, parameters, period, position, granted } = found;
        let series = entry.series().name().to_string();
        Self { series, scope: parameters.into_iter().collect(), period, position, granted }
    }
}

/// Judge a text
///
/// About structure: shape, check characters and rules. Whether it was granted is a question to `/v1/ids/{id}`.
#[utoipa::path(get, path = "/v1/series/{series}/validate/{id}", tag = "identifiers",
    params(("series" = String, Path, description = "The name of a series", example = "farmer"),
        ("id" = String, Path, description = "The text", example = "548126974596")),
    responses((status = 200, body = Verdict), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such series")))]
pub(super) async fn validate<S: Store>(
    State(context): State<Context<S>>,
    Path((series, id)): Path<(String, String)>,
) -> Result<Json<Verdict>, Problem> {
    let verdict = context.series(&series).await?.series().pattern().validate(&id);
    Ok(Json(Verdict { valid: verdict.is_valid(), reasons: reasons(&verdict) }))
}

/// Everything that speaks against a text.
pub(super) fn reasons(verdict: &bates_pattern::Verdict) -> Vec<Reason> {
    verdict
        .reasons()
        .iter()
        .map(|reason| Reason { code: reason.code(), message: reason.to_string() })
        .collect()
}

/// Trace an identifier to its series, scope and position
#[utoipa::path(get, path = "/v1/ids/{id}", tag = "identifiers",
    params(("id" = String, Path, description = "The identifier", example = "PROJ-9012-1001")),
    responses((status = 200, body = Trace), (status = "default", body = Problem, content_type = "application/problem+json", description = "It is no identifier of any series")))]
pub(super) async fn find<S: Store>(
    State(context): State<Context<S>>,
    Path(id): Path<String>,
) -> Result<Json<Trace>, Problem> {
    let matches: Vec<Match> = context.machine.find(&id).await?.into_iter().map(Match::from).collect();
    if matches.is_empty() {
        return Err(Problem::new(Code::UNKNOWN_ID, "the text is no identifier of any series"));
    }
    Ok(Json(Trace { id, matches }))
}
