//! Numbers of a scope, and what is known of scopes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::page::page;
use crate::scope::{Day, Parameters};

/// Which numbers are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Ask))]
#[serde(deny_unknown_fields)]
pub struct NumberRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// How many numbers.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schema(default = 1, minimum = 1, maximum = 1_000_000))]
    pub count: u64,
    /// The business date, for a series that shows one; by default today's, in its time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = Date, example = "2026-12-31"))]
    pub date: Option<Day>,
}

pub(crate) fn one() -> u64 {
    1
}

/// Numbers, ascending by position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Ids, example = json!({"ids": ["PROJ-9012-1001", "PROJ-9012-1002"]})))]
pub struct Numbers {
    /// As many as were asked for; fewer where the scope ends.
    pub ids: Vec<String>,
}

page! {
    /// Some scopes of a series, by their keys.
    #[cfg_attr(feature = "schema", schema(as = Page))]
    ScopePage {
        /// The scopes.
        scopes: ScopeCursor
    }
}

/// A scope, and how far its cursor has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = KnownScope))]
pub struct ScopeCursor {
    /// The values of its parameters.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The first position that is not granted. Some below it may still be held in memory.
    pub cursor: u64,
}

/// What is known of a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Peek {
    /// Whether a number of it was ever asked for.
    pub exists: bool,
    /// The highest position handed out; after a crash, the highest granted.
    pub last: Option<u64>,
    /// The position that comes next; `null` at the end.
    pub next: Option<u64>,
    /// How many numbers are left.
    pub left: u64,
    /// Whether that is an estimate, because of rejection rules.
    pub left_is_estimate: bool,
}
