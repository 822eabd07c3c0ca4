//! The numbers of a scope, and the state of scopes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::page::page;
use crate::scope::{Day, Parameters};
use crate::whole::whole;

/// The numbers to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NumberRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// How many numbers.
    #[serde(default = "default_count", deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(default = 1, minimum = 1, maximum = 1_000_000))]
    pub count: u64,
    /// The business date, for a series with dates; defaults to today in the time zone of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = Date, example = "2026-12-31"))]
    pub date: Option<Day>,
    /// Whether the answer also has the position of each number.
    #[serde(default, skip_serializing_if = "is_false")]
    pub positions: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

pub(crate) fn default_count() -> u64 {
    1
}

/// Numbers, ordered by position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(example = json!({"ids": ["PROJ-9012-1001", "PROJ-9012-1002"]})))]
pub struct Numbers {
    /// As many numbers as requested, or fewer if the scope ends.
    pub ids: Vec<String>,
    /// The position of each number, if `positions` was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<Vec<u64>>,
}

page! {
    /// One page of the scopes of a series, ordered by their keys.
    ScopePage {
        /// The scopes.
        scopes: ScopeCursor
    }
}

/// A scope and its cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScopeCursor {
    /// The parameters of the scope.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// The period of the scope, for a series that resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The first position not yet granted. A node may still hold positions below it in memory.
    pub cursor: u64,
}

/// The state of a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Peek {
    /// Whether a number of the scope was ever requested.
    pub exists: bool,
    /// The highest position issued; after a crash, the highest position granted.
    pub last: Option<u64>,
    /// The next position; `null` if the scope is exhausted.
    pub next: Option<u64>,
    /// How many numbers are left.
    pub left: u64,
    /// Whether `left` is an estimate, because of rejection rules.
    pub left_is_estimate: bool,
}
