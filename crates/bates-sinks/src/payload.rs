//! The JSON of a delivery: a document with its number, the same for every sink. Must never change the text of the document.

use bates_core::{Delivery, DeliveryError, ScopeKey};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The content of a file or object. It is the same for every attempt, so that a second delivery writes the same bytes.
pub(crate) fn data(delivery: &Delivery) -> Result<Vec<u8>, DeliveryError> {
    write(&Data::of(delivery, None)?)
}

/// The body of a webhook request, which also has the attempt.
pub(crate) fn event(delivery: &Delivery) -> Result<Vec<u8>, DeliveryError> {
    let data = Data::of(delivery, Some(delivery.attempt))?;
    write(&Event { kind: "document.numbered", timestamp: data.created_at.clone(), data })
}

#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    event: String,
    series: &'a str,
    scope: Parameters<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<&'a str>,
    position: u64,
    number: &'a str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    document: &'a RawValue,
}

impl<'a> Data<'a> {
    fn of(delivery: &'a Delivery, attempt: Option<u32>) -> Result<Self, DeliveryError> {
        let document = serde_json::from_str(&delivery.body)
            .map_err(|error| DeliveryError::Refused(format!("the document is not JSON: {error}").into()))?;
        Ok(Self {
            event: delivery.document_id.to_string(),
            series: delivery.scope_id.series.as_str(),
            scope: Parameters(&delivery.scope_id.scope),
            period: delivery.scope_id.scope.parts().1,
            position: delivery.position.value(),
            number: &delivery.number,
            created_at: delivery.created.to_string(),
            attempt,
            document,
        })
    }
}

struct Parameters<'a>(&'a ScopeKey);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.parts().0)
    }
}

fn write(value: &impl Serialize) -> Result<Vec<u8>, DeliveryError> {
    serde_json::to_vec(value).map_err(|error| DeliveryError::Refused(error.to_string().into()))
}

#[cfg(test)]
pub(crate) mod tests {
    use bates_core::Position;

    use super::*;

    pub(crate) fn delivery(scope: &str, body: &str) -> Delivery {
        Delivery {
            document_id: "01900000-0000-7000-8000-000000000001".parse().unwrap(),
            scope_id: bates_core::ScopeId {
                series: "document".parse().unwrap(),
                scope: ScopeKey::from_store(scope),
            },
            position: Position::new(1001).unwrap(),
            number: "PROJ-9012-1001".into(),
            body: body.into(),
            created: "2026-11-15T10:00:00.5Z".parse().unwrap(),
            attempt: 2,
        }
    }

    #[test]
    fn the_text_of_a_document_is_not_changed() {
        let body = r#"{"amount": 0.10000000000000000000000001, "b":1e400,"a":"é"}"#;
        let text = String::from_utf8(data(&delivery("project=PROJ @2026", body)).unwrap()).unwrap();
        let expected = r#"{"event":"01900000-0000-7000-8000-000000000001","series":"document","scope":{"project":"PROJ"},"period":"2026","position":1001,"number":"PROJ-9012-1001","created_at":"2026-11-15T10:00:00.5Z","document":"#;
        assert_eq!(text, format!("{expected}{body}}}"));
    }

    #[test]
    fn an_event_has_its_attempt_and_an_object_does_not() {
        let text = String::from_utf8(event(&delivery("", "1")).unwrap()).unwrap();
        let start = r#"{"type":"document.numbered","timestamp":"2026-11-15T10:00:00.5Z","data":{"#;
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains(r#""scope":{},"position":1001"#) && text.contains(r#""attempt":2"#), "{text}");
        let again = Delivery { attempt: 3, ..delivery("", "1") };
        assert_eq!(data(&delivery("", "1")).unwrap(), data(&again).unwrap());
    }

    #[test]
    fn a_document_that_is_not_json_is_refused() {
        for body in ["", "{", "1}", r#"1,"number":"2""#, "nan"] {
            assert!(matches!(data(&delivery("", body)), Err(DeliveryError::Refused(_))), "{body}");
        }
    }
}
