//! Numbers that are reserved for a time.

use serde::{Deserialize, Serialize};

use crate::scope::{Day, Parameters};

/// A number that is to be reserved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AskReservation))]
#[serde(deny_unknown_fields)]
pub struct ReservationRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// The business date, for a series that shows one; by default today's, in its time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = Date, example = "2025-12-31"))]
    pub date: Option<Day>,
    /// How long it lasts; 900 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(default = 900, minimum = 1, maximum = 2_592_000))]
    pub seconds: Option<u64>,
}

/// A number that is reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reservation {
    /// The number.
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-1001"))]
    pub id: String,
    /// What confirms or voids it.
    pub token: String,
    /// `reserved`, `confirmed` or `voided`.
    #[cfg_attr(feature = "schema", schema(example = "reserved"))]
    pub state: String,
    /// When it is voided, unless it is confirmed before.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub deadline: Option<String>,
}
