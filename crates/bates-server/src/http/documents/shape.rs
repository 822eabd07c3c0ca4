//! What a document looks like in an answer.

use std::collections::BTreeMap;

use bates_core::{Assigned, Document};
use serde::Serialize;
use utoipa::ToSchema;

/// A number that was assigned.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"id": "PROJ-9012-1001", "event": "019a8c4e-5f4b-7c3d-9a51-0d3a5b6c7d8e", "state": "pending"}))]
pub(in crate::http) struct Given {
    /// The number.
    id: String,
    /// The id of the document for ever, also for whoever it is delivered to.
    event: String,
    /// What became of it.
    #[schema(example = "pending")]
    state: &'static str,
}

impl Given {
    pub(super) fn of(assigned: &Assigned) -> Self {
        let Assigned { event, number, state, .. } = assigned;
        Self { id: number.to_string(), event: event.to_string(), state: state.name() }
    }
}

/// A document or a reservation, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct KnownDocument {
    /// Its number.
    #[schema(example = "PROJ-9012-1001")]
    id: String,
    /// Its id for ever; the token of a reservation.
    event: String,
    /// The series that its number is of.
    series: String,
    /// The scope.
    scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
    /// The position of its number.
    position: u64,
    /// `pending`, `delivered`, `dead` or `abandoned`; of a reservation `reserved`, `confirmed` or `voided`.
    #[schema(example = "pending")]
    state: &'static str,
    /// How often its delivery was begun.
    tries: u32,
    /// Why the last try failed.
    last_error: Option<String>,
    /// When it was numbered.
    #[schema(format = DateTime)]
    created: String,
    /// When its state, or the outcome of a try, was last written.
    #[schema(format = DateTime)]
    updated: String,
    /// While it is pending, when it is tried next, or the claim of the try under way ends; while it is reserved, when it
    /// is voided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    due: Option<String>,
    /// Whether the outcome of a try is not known: the sink may have taken the document. Given up, its number is uncertain
    /// then, `delivery_unknown`.
    in_doubt: bool,
}

impl KnownDocument {
    pub(super) fn of(document: &Document) -> Self {
        let (parameters, period) = document.place.scope.parts();
        Self {
            id: document.number.to_string(),
            event: document.event.to_string(),
            series: document.place.series.to_string(),
            scope: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            period: period.map(str::to_owned),
            position: document.position,
            state: document.state.name(),
            tries: document.tries,
            last_error: document.last_error.as_deref().map(str::to_owned),
            created: document.created.to_string(),
            updated: document.updated.to_string(),
            due: document.due.map(|due| due.to_string()),
            in_doubt: document.in_doubt,
        }
    }
}
