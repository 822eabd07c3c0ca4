//! Leases: numbers that a client takes in advance, returns, or still holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::page::page;
use crate::scope::{Day, Parameters};
use crate::whole::whole;

/// A lease to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// How many numbers to lease. A lease that lists its numbers has at most 100,000.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000, example = 100))]
    pub count: u64,
    /// The business date, for a series with dates; defaults to today, and then the numbers are valid only today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = Date, example = "2026-12-31"))]
    pub date: Option<Day>,
    /// Whether to list the numbers even where ranges of positions would be enough.
    #[serde(default)]
    pub numbers: bool,
    /// Earlier leases whose numbers are all used; the server ends them.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(max_items = 1_000))]
    pub used: Vec<String>,
}

/// A lease: ranges of positions that the client renders itself, or the numbers themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(example = json!({
    "lease": "01a1e19c-cd3f-7336-a8ad-4c01672ab58a", "ranges": [{"first": 1001, "last": 1100}],
    "template": "{project}-{type}-{seq}", "construction": 1})))]
pub struct LeaseGrant {
    /// The id of the lease, needed to end it.
    pub lease: String,
    /// Without `numbers`: the leased positions, each of which the client renders with the template and the scope. With
    /// `numbers`: the ranges that contain them, including positions that rejection rules skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Vec<PositionRange>>,
    /// The template of the series; only without `numbers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// When the numbering resets; only without `numbers`, and only for a series that resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// The version of the rendering rules; only without `numbers`. A client that does not know this version asks for
    /// `numbers` instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construction: Option<u16>,
    /// The numbers, if the client asked for them or the series is shuffled, has rejection rules or shows a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<LeasedNumber>>,
    /// After this many milliseconds the day of the numbers is over. Absent if the numbers stay valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_for_ms: Option<u64>,
}

/// A range of positions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PositionRange {
    /// The first position.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(maximum = 9_007_199_254_740_991_u64, example = 1063))]
    pub first: u64,
    /// The last position.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(maximum = 9_007_199_254_740_991_u64, example = 1100))]
    pub last: u64,
}

/// A number and its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[expect(missing_docs, reason = "the names of the fields are enough")]
pub struct LeasedNumber {
    pub position: u64,
    pub id: String,
}

/// The part of a lease that a client did not use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReturnRequest {
    /// Positions that were not used and never will be. Each range must lie within the lease.
    #[cfg_attr(feature = "schema", schema(max_items = 10_000))]
    pub unused: Vec<PositionRange>,
}

/// The result of ending a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReturnOutcome {
    /// How many numbers became gaps with reason `lease_lost`.
    pub gaps: u64,
}

page! {
    /// One page of leases that clients hold.
    LeasePage {
        /// The leases, in the order in which they were granted.
        leases: HeldLease
    }
}

/// A lease that a client holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[expect(missing_docs, reason = "the names of the other fields are enough")]
pub struct HeldLease {
    pub lease: String,
    pub series: String,
    pub scope: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    pub ranges: Vec<PositionRange>,
    /// The caller that holds the lease: the name of its token, or its address.
    pub who: String,
    /// When the lease was granted.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub since: String,
}
