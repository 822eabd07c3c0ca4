//! Documents that are numbered and what became of them, and numbers that are reserved for a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::page::page;
use crate::problem::Problem;
use crate::scope::{Day, Parameters};

/// The longest idempotency key.
const KEY_BYTES_MAX: usize = 255;

/// Whether a text can be an idempotency key: 1 to 255 visible characters of ASCII.
pub fn is_idempotency_key(text: &str) -> bool {
    let is_visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    (1..=KEY_BYTES_MAX).contains(&text.len()) && is_visible
}

/// A document that is to be numbered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AskDocument))]
#[serde(deny_unknown_fields)]
pub struct DocumentRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// The business date, for a series that shows one; by default today's, in its time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = Date, example = "2025-12-31"))]
    pub date: Option<Day>,
    /// The document, any JSON.
    #[cfg_attr(feature = "schema", schema(value_type = Object, example = json!({"title": "Plan"})))]
    pub document: Box<RawValue>,
    /// In a stream of lines, the idempotency key of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A number that was assigned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Given, example = json!({
    "id": "PROJ-9012-1001", "event": "019a8c4e-5f4b-7c3d-9a51-0d3a5b6c7d8e", "state": "pending"})))]
pub struct Assignment {
    /// The number.
    pub id: String,
    /// The id of the document for ever, also where it is delivered.
    pub event: String,
    /// What became of it.
    #[cfg_attr(feature = "schema", schema(example = "pending"))]
    pub state: String,
}

/// The answer to one line of many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LineAnswer {
    /// It has a number.
    Assignment(Assignment),
    /// It has none.
    Refusal {
        /// The line, counted from 1.
        line: u64,
        /// Why.
        error: Problem,
    },
}

/// A document or a reservation, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KnownDocument {
    /// Its number.
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-1001"))]
    pub id: String,
    /// Its id for ever; the token of a reservation.
    pub event: String,
    /// The series that its number is of.
    pub series: String,
    /// The scope.
    pub scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The position of its number.
    pub position: u64,
    /// `pending`, `delivered`, `dead` or `abandoned`; of a reservation `reserved`, `confirmed` or `voided`.
    #[cfg_attr(feature = "schema", schema(example = "pending"))]
    pub state: String,
    /// How often its delivery was begun.
    pub tries: u32,
    /// Why the last try failed.
    pub last_error: Option<String>,
    /// When it was numbered.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub created: String,
    /// When its state, or the outcome of a try, was last written.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub updated: String,
    /// While it is pending, when it is tried next, or the claim of the try under way ends; while it is reserved, when it
    /// is voided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub due: Option<String>,
    /// Whether the outcome of a try is not known: the sink may have taken the document. Given up, its number is uncertain
    /// then, `delivery_unknown`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub in_doubt: bool,
}

page! {
    /// Some documents, by their event ids.
    #[cfg_attr(feature = "schema", schema(as = Documents))]
    OutboxPage {
        /// The documents.
        documents: KnownDocument
    }
}

/// How many documents of each series are in each state.
pub type OutboxCounts = BTreeMap<String, BTreeMap<String, u64>>;

/// About how many documents was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Count))]
pub struct DecisionCount {
    /// How many.
    pub count: u64,
}

/// A number that is to be reserved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AskReservation))]
#[serde(deny_unknown_fields)]
pub struct ReservationRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
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
