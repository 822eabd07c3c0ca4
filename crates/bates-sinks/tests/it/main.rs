//! Tests of the sinks, with real servers, a real folder and a real database.
#![allow(clippy::unwrap_used)]

mod description;
mod folder;
mod receiver;
mod table;
mod webhook;

use bates_core::{Delivery, DeliveryError, Position, ScopeId, ScopeKey, Sink};
use bates_sinks::{SinkDescription, SinkError};
use serde_json::{Value, json};
use uuid::Uuid;

/// Opens a sink described in JSON, which is also YAML.
pub(crate) fn open_sink(description: &Value) -> Result<Box<dyn Sink>, SinkError> {
    serde_saphyr::from_str::<SinkDescription>(&description.to_string()).unwrap().open()
}

pub(crate) fn delivery(position: u64, body: &str) -> Delivery {
    Delivery {
        document_id: Uuid::now_v7(),
        scope_id: ScopeId {
            series: "document".parse().unwrap(),
            scope: ScopeKey::new([("project", "PROJ"), ("type", "9012")], None).unwrap(),
        },
        position: Position::new(position).unwrap(),
        number: format!("PROJ-9012-{position}").into(),
        body: body.into(),
        created: "2026-11-15T10:00:00Z".parse().unwrap(),
        attempt: 1,
    }
}

/// The JSON that every sink writes for a document.
pub(crate) fn expected(delivery: &Delivery) -> Value {
    json!({
        "event": delivery.document_id.to_string(),
        "series": "document",
        "scope": {"project": "PROJ", "type": "9012"},
        "position": delivery.position.value(),
        "number": &*delivery.number,
        "created_at": "2026-11-15T10:00:00Z",
        "document": serde_json::from_str::<Value>(&delivery.body).unwrap(),
    })
}

pub(crate) fn is_refused(answer: &Result<(), DeliveryError>) -> bool {
    matches!(answer, Err(DeliveryError::Refused(_)))
}

/// The sink may have accepted the document.
pub(crate) fn is_unanswered(answer: &Result<(), DeliveryError>) -> bool {
    matches!(answer, Err(DeliveryError::Unanswered(_)))
}

pub(crate) fn is_unavailable(answer: &Result<(), DeliveryError>) -> bool {
    matches!(answer, Err(DeliveryError::Unavailable(_)))
}
