//! The description of a series, as the configuration file and the API write it.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::page::page;
use crate::whole::{whole, whole_or_null};

/// The description of a series, as its owner writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SeriesDescription {
    /// The template, for example `{project}-{type}-{seq}`.
    pub pattern: String,
    /// The promise: `unique`, `ordered` or `gapless`.
    #[serde(default = "default_promise")]
    pub promise: String,
    /// The order of the numbers: `counting` or `shuffled`.
    #[serde(default = "default_order")]
    pub order: String,
    /// The first position. Defaults to 1 for decimal numbers that count up, and to 0 otherwise.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(maximum = 9_007_199_254_740_991_u64))]
    pub start: Option<u64>,
    /// The template of Redis keys that name scopes, for example `id-pool:{project}:{type}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What `LPOP` returns: `id`, the whole identifier, or `seq`, its sequence part.
    #[serde(default = "default_value")]
    pub value: String,
    /// When the numbering resets: `never`, `yearly`, `monthly`, `daily` or `fiscal-MM-DD`.
    #[serde(default = "default_reset")]
    pub reset: String,
    /// The time zone of business dates, by its IANA name.
    #[serde(default = "default_time_zone")]
    pub time_zone: String,
    /// A rule set that numbers must satisfy: `openg2p` or `mosip`, with options as in `openg2p:even_run=2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject: Option<String>,
    /// Digits or words that must not occur in a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restrict: Vec<String>,
    /// The name of a sink that the operator offers to this series, for its documents. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(example = "tenant-hooks"))]
    pub sink: Option<String>,
    /// The name of a pool that the operator offers to this series, for lists in Redis. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(example = "tenant-lists"))]
    pub pool: Option<String>,
    /// Limits of the dispenser for this series.
    #[serde(default)]
    pub limits: LimitSettings,
    /// Whether the server records who takes numbers, and for how long it keeps the records. Off by default.
    #[serde(default, skip_serializing_if = "AuditSetting::is_off")]
    pub audit: AuditSetting,
}

/// The limits of a series. Fields that are left out have their defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// How many positions the first range of a scope has. A crash right after that grant skips at most this many.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000_000))]
    pub lease_min: u64,
    /// How many positions the largest range has. A crash skips at most this many and the share of `watermark_percent`.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000_000))]
    pub lease_max: u64,
    /// The dispenser fetches the next range when this share of the current one is left.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(maximum = 100))]
    pub watermark_percent: u8,
    /// How many callers may wait for one scope.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000))]
    pub waiters_max: usize,
    /// How many scopes the series may have.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub scopes_max: u64,
}

/// Whether the server records who takes numbers: `true`, `false`, or `{retention_hours: 9600}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum AuditSetting {
    /// `true`: recorded and kept forever. `false`: not recorded.
    Switch(bool),
    /// Recorded, and kept for a time.
    Retained(AuditRetention),
}

/// How long audit records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AuditRetention {
    /// The server removes a record after this many hours.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 876_000, example = 9_600))]
    pub retention_hours: u64,
}

/// A series: its description, and the properties derived from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Series {
    /// The name of the series.
    #[cfg_attr(feature = "schema", schema(example = "document"))]
    pub name: String,
    #[expect(missing_docs, reason = "flattened: the JSON object of the series has its fields")]
    #[serde(flatten)]
    pub description: SeriesDescription,
    /// The names of the scope parameters.
    pub parameters: Vec<String>,
    /// The last position of a scope.
    pub last: u64,
    /// How many numbers a scope has.
    pub capacity: u64,
    /// Whether `capacity` is an estimate, because of rejection rules.
    pub capacity_is_estimate: bool,
    /// Where the series is described, and therefore where it can be changed: `file` or `api`.
    pub origin: String,
}

page! {
    /// One page of series, ordered by name.
    SeriesPage {
        /// The series.
        series: Series
    }
}

/// A change to a series. Fields that are left out stay as they are; `null` restores the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SeriesPatch {
    /// The new promise: `unique`, `ordered` or `gapless`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    /// The limits to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<LimitSettings>))]
    pub limits: Option<Value>,
    /// A rule set that numbers must satisfy; `null` removes it.
    #[serde(default, deserialize_with = "null_or_value", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub reject: Option<Value>,
    /// Digits or words that must not occur in a number; `null` removes them.
    #[serde(default, deserialize_with = "null_or_value", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<String>>))]
    pub restrict: Option<Value>,
    /// Whether the server records who takes numbers, and for how long it keeps the records; `null` switches the audit off.
    #[serde(default, deserialize_with = "null_or_value", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<AuditSetting>))]
    pub audit: Option<Value>,
}

/// What happened to the numbers of a retired series that the server held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Retirement {
    /// Unused numbers that were returned to their cursors.
    pub returned: u64,
    /// Unused numbers that became gaps.
    pub gaps: u64,
}

fn default_promise() -> String {
    "unique".to_owned()
}

fn default_order() -> String {
    "counting".to_owned()
}

fn default_value() -> String {
    "id".to_owned()
}

fn default_reset() -> String {
    "never".to_owned()
}

fn default_time_zone() -> String {
    "UTC".to_owned()
}

/// The same defaults as in the core; a test in `bates-server` compares them.
impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            lease_min: 32,
            lease_max: 65_536,
            watermark_percent: 25,
            waiters_max: 10_000,
            scopes_max: 10_000_000,
        }
    }
}

impl Default for AuditSetting {
    fn default() -> Self {
        Self::Switch(false)
    }
}

impl AuditSetting {
    fn is_off(&self) -> bool {
        *self == Self::Switch(false)
    }
}

/// Not derived, so that the error message says what is expected.
impl<'de> Deserialize<'de> for AuditSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AuditVisitor;
        impl<'de> Visitor<'de> for AuditVisitor {
            type Value = AuditSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a map with retention_hours")
            }

            fn visit_bool<E>(self, is_on: bool) -> Result<AuditSetting, E> {
                Ok(AuditSetting::Switch(is_on))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AuditSetting, A::Error> {
                AuditRetention::deserialize(MapAccessDeserializer::new(map)).map(AuditSetting::Retained)
            }
        }
        deserializer.deserialize_any(AuditVisitor)
    }
}

/// Distinguishes `null` from a field that is left out.
fn null_or_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_round_trips_through_json() {
        let text = r#"{"name":"document","pattern":"{seq}","promise":"unique","order":"counting","start":1001,
            "value":"id","reset":"never","time_zone":"UTC","limits":{"lease_min":32},"audit":{"retention_hours":1},
            "parameters":["project"],"last":9,"capacity":9,"capacity_is_estimate":false,"origin":"file"}"#;
        let series: Series = serde_json::from_str(text).expect("a valid series");
        assert_eq!((series.description.start, series.description.limits.lease_max), (Some(1001), 65_536));
        let text = serde_json::to_string(&series).expect("all keys are strings");
        assert_eq!(serde_json::from_str::<Series>(&text).expect("the server wrote it"), series);
    }
}
