//! Documents and their delivery status, and reservations of numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::page::page;
use crate::problem::Problem;
use crate::scope::{Day, Parameters};
use crate::whole::whole_or_null;

const KEY_BYTES_MAX: usize = 255;

/// Whether a text is a valid idempotency key: 1 to 255 printable ASCII characters.
pub fn is_idempotency_key(text: &str) -> bool {
    let is_printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    (1..=KEY_BYTES_MAX).contains(&text.len()) && is_printable
}

/// A document to number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DocumentRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// The business date, for a series with dates; defaults to today in the time zone of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = Date, example = "2025-12-31"))]
    pub date: Option<Day>,
    /// The document: any JSON value except `null`.
    #[cfg_attr(feature = "schema", schema(value_type = Object, example = json!({"title": "Plan"})))]
    pub document: Box<RawValue>,
    /// The idempotency key of this line, in a request of many lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The number assigned to a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(example = json!({
    "id": "PROJ-9012-1001", "event": "019a8c4e-5f4b-7c3d-9a51-0d3a5b6c7d8e", "state": "pending"})))]
pub struct Assignment {
    /// The number.
    pub id: String,
    /// The permanent id of the document, which the sink receives as well.
    pub event: String,
    /// The state of the document.
    #[cfg_attr(feature = "schema", schema(example = "pending"))]
    pub state: String,
}

/// The answer to one line of a request of many lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LineAnswer {
    /// The document has a number.
    Assignment(Assignment),
    /// The document was not numbered.
    Refusal {
        /// The number of the line, starting at 1.
        line: u64,
        /// Why not.
        error: Problem,
    },
}

/// A document or a reservation, with its delivery status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DocumentStatus {
    /// The number.
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-1001"))]
    pub id: String,
    /// The permanent id of a document, or the token of a reservation.
    pub event: String,
    /// The series of the number.
    pub series: String,
    /// The parameters of the scope.
    pub scope: BTreeMap<String, String>,
    /// The period of the scope, for a series that resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The position of the number; absent if the series is shuffled, unless the caller has the right `operate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// `pending`, `delivered`, `dead` or `abandoned`; for a reservation `reserved`, `confirmed` or `voided`.
    #[cfg_attr(feature = "schema", schema(example = "pending"))]
    pub state: String,
    /// How many delivery attempts were started.
    pub tries: u32,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// When the number was assigned.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub created: String,
    /// When the state or the outcome of an attempt was last written.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub updated: String,
    /// For a pending document, when the next attempt is due or when the claim of the current attempt ends; for a
    /// reservation, when it is voided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub due: Option<String>,
    /// Whether the outcome of an attempt is unknown: the sink may have received the document. If such a document is
    /// abandoned, its number is an uncertain gap with reason `delivery_unknown`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub in_doubt: bool,
}

page! {
    /// One page of documents, ordered by `event`.
    OutboxPage {
        /// The documents.
        documents: DocumentStatus
    }
}

/// The number of documents by series and state.
pub type OutboxCounts = BTreeMap<String, BTreeMap<String, u64>>;

/// How many documents an action changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DecisionCount {
    /// How many documents changed.
    pub count: u64,
}

/// A reservation to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReservationRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// The business date, for a series with dates; defaults to today in the time zone of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = Date, example = "2025-12-31"))]
    pub date: Option<Day>,
    /// How many seconds the reservation lasts.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(default = 900, minimum = 1, maximum = 2_592_000))]
    pub seconds: Option<u64>,
}

/// A reserved number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reservation {
    /// The number.
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-1001"))]
    pub id: String,
    /// The token that confirms or voids the reservation.
    pub token: String,
    /// `reserved`, `confirmed` or `voided`.
    #[cfg_attr(feature = "schema", schema(example = "reserved"))]
    pub state: String,
    /// When the reservation is voided unless it is confirmed first.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub deadline: Option<String>,
}
