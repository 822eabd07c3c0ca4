//! `GET /v1/leases`: what clients hold in advance, and since when.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use bates_core::{ClientLease, ClientLeaseFilter, Code, Store};
use serde::Serialize;
use utoipa::ToSchema;

use super::lease::{Range, cut};
use super::problem::Problem;
use super::routes::{self, Context};

/// Leases on a page.
const PAGE: usize = 1_000;

/// What clients hold.
#[derive(Serialize, ToSchema)]
pub(super) struct HeldLeases {
    /// In the order in which they were given.
    leases: Vec<HeldLease>,
    /// Give this as `after` to see those behind them; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// A lease that a client holds.
#[derive(Serialize, ToSchema)]
pub(super) struct HeldLease {
    lease: String,
    series: String,
    scope: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
    ranges: Vec<Range>,
    /// Who holds it: a token by its name, or an address.
    who: String,
    /// Since when.
    #[schema(format = DateTime)]
    since: String,
}

/// List what clients hold in advance
#[utoipa::path(get, path = "/v1/leases", tag = "numbers",
    params(("series" = Option<String>, Query, description = "Only those of this series", example = "document"),
        ("after" = Option<String>, Query, description = "The `after` of the page before")),
    responses((status = 200, body = HeldLeases),
        (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(super) async fn held<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<HeldLeases>, Problem> {
    let (mut of, mut after) = (ClientLeaseFilter::default(), None);
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        let refused = |detail: String| Problem::new(Code::BAD_ARGUMENTS, detail);
        match &*name {
            "series" => of.series = Some(routes::name(&value)?),
            "after" => {
                let id = value.parse().map_err(|_| refused("after is not the one of a page before".into()));
                after = Some(id?);
            }
            name => return Err(refused(format!("there is no parameter {:?}", cut(name)))),
        }
    }
    let found = context.machine.leases(of, after, PAGE).await?;
    let after = found.last().filter(|_| found.len() == PAGE).map(|lease| lease.id.to_string());
    Ok(Json(HeldLeases { leases: found.into_iter().map(HeldLease::of).collect(), after }))
}

impl HeldLease {
    fn of(ClientLease { id, place, ranges, who, at }: ClientLease) -> Self {
        let (parameters, period) = place.scope.parts();
        Self {
            lease: id.to_string(),
            series: place.series.to_string(),
            scope: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            period: period.map(str::to_owned),
            ranges: ranges.into_iter().map(Range::of).collect(),
            who: who.into(),
            since: at.to_string(),
        }
    }
}
