//! Numbers in advance: asked for, given, returned, and who holds some.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::page::page;
use crate::scope::{Day, Parameters};

/// What is wanted in advance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// How many numbers; where they are written out, at most 100,000 are given.
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000, example = 100))]
    pub count: u64,
    /// The business date, for a series that shows one; by default today's, and then the numbers are good for today only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = Date, example = "2026-12-31"))]
    pub date: Option<Day>,
    /// Whether numbers are wanted where ranges of positions would do.
    #[serde(default)]
    pub numbers: bool,
    /// Leases from before of which everything was used: they have ended.
    #[serde(default)]
    pub used: Vec<String>,
}

/// Numbers in advance: ranges of positions for a client that renders them, or the numbers themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = GivenLease, example = json!({
    "lease": "01a1e19c-cd3f-7336-a8ad-4c01672ab58a", "ranges": [{"first": 1001, "last": 1100}],
    "template": "{project}-{type}-{seq}", "construction": 1})))]
pub struct LeaseGrant {
    /// By what it is named when it ends.
    pub lease: String,
    /// Every position in them is a number, which the template and the scope make of it. With numbers: where they lie,
    /// with positions that are no numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Vec<PositionRange>>,
    /// The template of the series, with ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// When the numbering starts again, with ranges, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// The version of what a template means, with ranges. Who does not know it asks for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construction: Option<u16>,
    /// The numbers, where the series is shuffled, rejects some or shows a day, or numbers were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<LeasedNumber>>,
    /// After this many milliseconds the numbers are of a day that is over; missing if they are good at any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_for_ms: Option<u64>,
}

/// Positions from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Range))]
#[serde(deny_unknown_fields)]
pub struct PositionRange {
    /// The first position.
    #[cfg_attr(feature = "schema", schema(example = 1063))]
    pub first: u64,
    /// The last position.
    #[cfg_attr(feature = "schema", schema(example = 1100))]
    pub last: u64,
}

/// A number, and its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = GivenNumber))]
#[expect(missing_docs, reason = "the names say it, and the description of the API has no more")]
pub struct LeasedNumber {
    pub position: u64,
    pub id: String,
}

/// What a client did not use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReturnRequest {
    /// The positions of the lease that were not used, and never will be; each range wholly within the lease.
    pub unused: Vec<PositionRange>,
}

/// A lease that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Returned))]
pub struct ReturnOutcome {
    /// How many numbers are gaps from now on: `lease_lost`.
    pub gaps: u64,
}

page! {
    /// What clients hold.
    #[cfg_attr(feature = "schema", schema(as = HeldLeases))]
    LeasePage {
        /// In the order in which they were given.
        leases: HeldLease
    }
}

/// A lease that a client holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[expect(missing_docs, reason = "the names say it, and the description of the API has no more")]
pub struct HeldLease {
    pub lease: String,
    pub series: String,
    pub scope: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    pub ranges: Vec<PositionRange>,
    /// Who holds it: a token by its name, or an address.
    pub who: String,
    /// Since when.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub since: String,
}
