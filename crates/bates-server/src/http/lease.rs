//! `POST /v1/series/{series}/lease`: numbers in advance, which a client hands out from its own memory; and their end.

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use bates_core::{Advance, By, Code, EndRefused, Entry, Lease, LeaseAsk, LeaseRefused, Leased, Store};
use bates_pattern::{Position, Reset};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::ask::{self, Day, Pairs};
use super::problem::Problem;
use super::routes::{Context, Path};
use crate::Caller;

/// Positions in one lease, which is two integers however many they are. A crash of the client loses so many at the most.
const COUNT_MAX: u64 = 1_000_000;

/// Numbers in one lease, which have to be written out: some megabytes.
const NUMBERS_MAX: u64 = 100_000;

/// Leases that one request says are used.
const USED_MAX: usize = 1_000;

/// Ranges in which the rest of a lease may lie.
const UNUSED_MAX: usize = 10_000;

/// A question, with all leases that may be used.
const ASK_BYTES_MAX: usize = 128 * 1024;

/// The rest of a lease, in all ranges that there may be.
const RETURN_BYTES_MAX: usize = 1024 * 1024;

/// What is wanted in advance.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"}))]
    scope: Pairs,
    /// How many numbers; where they are written out, at most 100,000 are given.
    #[schema(minimum = 1, maximum = 1_000_000, example = 100)]
    count: u64,
    /// The business date, for a series that shows one; by default today's, and then the numbers are good for today only.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Date, example = "2026-12-31")]
    date: Option<Day>,
    /// Whether numbers are wanted where ranges of positions would do.
    #[serde(default)]
    numbers: bool,
    /// Leases from before of which everything was used: they have ended.
    #[serde(default)]
    used: Vec<String>,
}

/// Numbers in advance: ranges of positions for a client that renders them, or the numbers themselves.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"lease": "01a1e19c-cd3f-7336-a8ad-4c01672ab58a", "ranges": [{"first": 1001, "last": 1100}],
    "template": "{project}-{type}-{seq}", "construction": 1}))]
pub(super) struct GivenLease {
    /// By what it is named when it ends.
    lease: String,
    /// Every position in them is a number, which the template and the scope make of it. With numbers: where they lie,
    /// with positions that are no numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<Vec<Range>>,
    /// The template of the series, with ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<String>,
    /// When the numbering starts again, with ranges, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<String>,
    /// The version of what a template means, with ranges. Who does not know it asks for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    construction: Option<u16>,
    /// The numbers, where the series is shuffled, rejects some or shows a day, or numbers were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    numbers: Option<Vec<GivenNumber>>,
    /// After so many milliseconds the numbers are of a day that is over; missing if they are good at any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    good_for_ms: Option<u64>,
}

/// Positions from the first to the last.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    /// The first position.
    #[schema(example = 1063)]
    first: u64,
    /// The last position.
    #[schema(example = 1100)]
    last: u64,
}

/// A number, and its position.
#[derive(Serialize, ToSchema)]
pub(super) struct GivenNumber {
    position: u64,
    id: String,
}

/// What a client did not use.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReturnRequest {
    /// The positions of the lease that were not used, and never will be; each range wholly within the lease.
    unused: Vec<Range>,
}

/// A lease that has ended.
#[derive(Serialize, ToSchema)]
pub(super) struct Returned {
    /// How many numbers are gaps from now on: `lease_lost`.
    gaps: u64,
}

impl Range {
    pub(super) fn of(lease: Lease) -> Self {
        Self { first: lease.from(), last: lease.to() - 1 }
    }

    fn lease(self) -> Option<Lease> {
        Lease::new(self.first, self.last.checked_add(1)?)
    }
}

impl GivenLease {
    fn of(entry: &Entry, Leased { id, what, good_for }: Leased) -> Self {
        let pattern = entry.series().pattern();
        let none = Self {
            lease: id.to_string(),
            ranges: None,
            template: None,
            reset: None,
            construction: None,
            numbers: None,
            good_for_ms: good_for.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        };
        match what {
            Advance::Ranges(ranges) => Self {
                ranges: Some(ranges.into_iter().map(Range::of).collect()),
                template: Some(pattern.template().to_owned()),
                reset: Some(pattern.reset())
                    .filter(|reset| *reset != Reset::Never)
                    .map(|reset| reset.to_string()),
                construction: Some(pattern.construction().number()),
                ..none
            },
            Advance::Numbers(numbers, ranges) => {
                let number = |(position, id): (Position, &str)| GivenNumber {
                    position: position.value(),
                    id: id.to_owned(),
                };
                let ranges = Some(ranges.into_iter().map(Range::of).collect());
                Self { numbers: Some(numbers.iter().map(number).collect()), ranges, ..none }
            }
        }
    }
}

impl From<EndRefused> for Problem {
    fn from(error: EndRefused) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<LeaseRefused> for Problem {
    fn from(error: LeaseRefused) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Take numbers in advance
///
/// For clients that hand numbers out from their own memory, of `unique` series only. Where every position is a number and
/// the client can render it, ranges of positions are given; otherwise the numbers. What is given is used or lost: what is
/// returned is a gap and comes to nobody else. A lease that nothing was said of for a day counts as held by a client that
/// crashed.
#[utoipa::path(post, path = "/v1/series/{series}/lease", tag = "numbers",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body = LeaseRequest,
    responses(
        (status = 200, description = "As many as were asked for; fewer where the scope ends", body = GivenLease),
        (status = "default", description = "Nothing was given", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn lease<S: Store>(
    State(context): State<Context<S>>,
    Extension(caller): Extension<Caller>,
    Path(series): Path<String>,
    body: Body,
) -> Result<Json<GivenLease>, Problem> {
    let entry = context.series(&series).await?;
    let body = ask::bytes(body, ASK_BYTES_MAX, context.body_timeout).await?;
    let LeaseRequest { scope, count, date, numbers, used } = ask::json(&body)?;
    if !(1..=COUNT_MAX).contains(&count) {
        let detail = format!("the count is {count}; it may be 1 to {COUNT_MAX}");
        return Err(Problem::new(Code::BAD_COUNT, detail));
    }
    if used.len() > USED_MAX {
        let detail = format!("{} leases are used; one request may name {USED_MAX}", used.len());
        return Err(Problem::new(Code::BAD_BODY, detail));
    }
    // What is no id is none of a lease, and has ended before.
    let used = used.iter().filter_map(|id| id.parse().ok()).collect();
    let parameters = scope.parameters();
    let ask = LeaseAsk { count, numbers_max: NUMBERS_MAX, as_numbers: numbers, used };
    let by = By::http(caller.who());
    let leased = context.machine.lease(&entry, ask::name(&parameters, date), ask, by).await?;
    Ok(Json(GivenLease::of(&entry, leased)))
}

/// End a lease
///
/// What was not used of it is a gap from now on; all else was used. A range that is not wholly within the lease is refused,
/// and the lease stays open.
#[utoipa::path(post, path = "/v1/leases/{lease}/return", tag = "numbers",
    params(("lease" = String, Path, description = "The `lease` that was answered")),
    request_body = ReturnRequest,
    responses((status = 200, body = Returned),
        (status = "default", description = "Nothing was written", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn give_back<S: Store>(
    State(context): State<Context<S>>,
    Path(lease): Path<String>,
    body: Body,
) -> Result<Json<Returned>, Problem> {
    let unknown = || Problem::new(Code::UNKNOWN_LEASE, format!("there is no lease {:?}", cut(&lease)));
    let id: Uuid = lease.parse().map_err(|_| unknown())?;
    let body = ask::bytes(body, RETURN_BYTES_MAX, context.body_timeout).await?;
    let ReturnRequest { unused } = ask::json(&body)?;
    if unused.len() > UNUSED_MAX {
        let detail = format!("{} ranges are unused; one request may name {UNUSED_MAX}", unused.len());
        return Err(Problem::new(Code::BAD_BODY, detail));
    }
    let unused: Option<Vec<Lease>> = unused.into_iter().map(Range::lease).collect();
    let unused = unused.ok_or_else(|| Problem::new(Code::BAD_BODY, "a range ends before it begins"))?;
    Ok(Json(Returned { gaps: context.machine.end_lease(id, unused).await? }))
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}
