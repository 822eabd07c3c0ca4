//! A series in words: what a configuration file and the API both say of one.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A series as its users describe it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The template, as in `{project}-{type}-{seq}`.
    pub pattern: String,
    /// What is promised of its numbers: `unique`, `ordered` or `gapless`.
    #[serde(default = "unique")]
    pub promise: String,
    /// In which order positions walk through the space: `counting` or `shuffled`.
    #[serde(default = "counting")]
    pub order: String,
    /// The first position; by default 1 where the text is decimal and counts, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// How Redis keys name its scopes, as in `id-pool:{project}:{type}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What `LPOP` gives: `id`, the whole identifier, or `seq`, its sequence part.
    #[serde(default = "id")]
    pub value: String,
    /// When the numbering starts again: `never`, `yearly`, `monthly`, `daily` or `fiscal-MM-DD`.
    #[serde(default = "never")]
    pub reset: String,
    /// The time zone in which a business date is taken, by its IANA name.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// A rule set that numbers must keep: `openg2p` or `mosip`, with settings as in `openg2p:even_run=2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject: Option<String>,
    /// Digits or words that may not occur in a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restrict: Vec<String>,
    /// The limits within which it is handed out.
    #[serde(default)]
    pub limits: LimitSettings,
    /// Whether it is recorded who takes its numbers, and for how long that is kept; not unless said.
    #[serde(default, skip_serializing_if = "AuditSetting::is_off")]
    pub audit: AuditSetting,
}

/// The limits of a series; what is left out has its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = DescribedLimits))]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Numbers in the first lease of a scope; a crash right after it skips at most as many.
    pub lease_min: u64,
    /// Numbers in the largest lease; a crash skips at most twice as many.
    pub lease_max: u64,
    /// When this share of a lease is left, the next one is fetched.
    pub watermark_percent: u8,
    /// Callers that may wait for one scope.
    pub waiters_max: usize,
    /// Scopes that the series may have.
    pub scopes_max: u64,
}

/// Whether it is recorded who takes numbers: `true`, `false`, or `{retention_hours: 9600}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = DescribedAudit))]
#[serde(untagged)]
pub enum AuditSetting {
    /// It is, and kept for ever; or it is not.
    Switch(bool),
    /// It is, and kept for a time.
    Kept(AuditRetention),
}

/// How long an audit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = KeptAudit))]
#[serde(deny_unknown_fields)]
pub struct AuditRetention {
    /// A record is removed after this many hours.
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 876_000, example = 9_600))]
    pub retention_hours: u64,
}

/// A series, and what follows from its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Series {
    /// Its name.
    #[cfg_attr(feature = "schema", schema(example = "document"))]
    pub name: String,
    #[expect(missing_docs, reason = "its fields are those of the series, also in OpenAPI")]
    #[serde(flatten)]
    pub description: Description,
    /// The parameters of a scope.
    pub parameters: Vec<String>,
    /// The last position of a scope.
    pub last: u64,
    /// How many numbers a scope has.
    pub capacity: u64,
    /// Whether the capacity is an estimate, because of rejection rules.
    pub capacity_is_estimate: bool,
    /// Who described it, and so who may change it: `file` or `api`.
    pub origin: String,
}

/// All series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AllSeries))]
pub struct SeriesList {
    /// By name.
    pub series: Vec<Series>,
}

/// What may be changed of a series at any time. What is left out stays; `null` is the default again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Amendment {
    /// What the series promises from now on: `unique`, `ordered` or `gapless`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    /// Some of the limits, or all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<LimitSettings>))]
    pub limits: Option<Value>,
    /// A rule set that numbers must keep; `null` for none.
    #[serde(default, deserialize_with = "null_or_value", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub reject: Option<Value>,
    /// Digits or words that may not occur in a number; `null` for none.
    #[serde(default, deserialize_with = "null_or_value", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<String>>))]
    pub restrict: Option<Value>,
    /// Whether it is recorded who takes its numbers, and for how long that is kept; `null` for not at all.
    #[serde(default, deserialize_with = "null_or_value", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<AuditSetting>))]
    pub audit: Option<Value>,
}

/// What became of the numbers that a retired series held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Retired))]
pub struct Retirement {
    /// Unused numbers that went back to their cursors.
    pub returned: u64,
    /// Numbers that remain as gaps.
    pub gaps: u64,
}

fn unique() -> String {
    "unique".to_owned()
}

fn counting() -> String {
    "counting".to_owned()
}

fn id() -> String {
    "id".to_owned()
}

fn never() -> String {
    "never".to_owned()
}

fn utc() -> String {
    "UTC".to_owned()
}

/// The defaults of the core, which a test of the server compares.
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

/// By hand, so that an error says what was expected.
impl<'de> Deserialize<'de> for AuditSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = AuditSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a map with retention_hours")
            }

            fn visit_bool<E>(self, is_on: bool) -> Result<AuditSetting, E> {
                Ok(AuditSetting::Switch(is_on))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AuditSetting, A::Error> {
                AuditRetention::deserialize(MapAccessDeserializer::new(map)).map(AuditSetting::Kept)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Tells `null` from a field that is left out.
fn null_or_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client reads what a server writes, also with a description of its own in it.
    #[test]
    fn a_series_is_read_as_it_is_written() {
        let text = r#"{"name":"document","pattern":"{seq}","promise":"unique","order":"counting","start":1001,
            "value":"id","reset":"never","time_zone":"UTC","limits":{"lease_min":32},"audit":{"retention_hours":1},
            "parameters":["project"],"last":9,"capacity":9,"capacity_is_estimate":false,"origin":"file"}"#;
        let series: Series = serde_json::from_str(text).expect("a series");
        assert_eq!((series.description.start, series.description.limits.lease_max), (Some(1001), 65_536));
        let text = serde_json::to_string(&series).expect("it has only texts as keys");
        assert_eq!(serde_json::from_str::<Series>(&text).expect("it was written"), series);
    }
}
