//! From the description of a series to its specification. The core judges what a series may be.

use std::time::Duration;

use bates_api::{AuditRetention, AuditSetting, Description, LimitSettings};
use bates_core::{Auditing, KeyTemplate, Limits, Promise, SeriesName, SeriesSpec, Value};
use bates_pattern::{Position, Reject, Reset};

const HOURS_MAX: u64 = 100 * 365 * 24;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    pub field: &'static str,
    pub problem: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct FieldErrors(pub Vec<FieldError>);

/// The series that a description describes, or every field that cannot be read.
pub fn spec(description: &Description, name: SeriesName) -> Result<SeriesSpec, FieldErrors> {
    // The same text for the same series, however it was written.
    let text = serde_json::to_string(description).expect("a description has no keys that are not texts");
    let mut spec = SeriesSpec {
        time_zone: description.time_zone.as_str().into(),
        limits: limits(&description.limits),
        description: text.into(),
        ..SeriesSpec::new(name, &description.pattern)
    };
    let order = one_of("order", &description.order, &[("counting", false), ("shuffled", true)]);
    let value = one_of("value", &description.value, &[("id", Value::Id), ("seq", Value::Seq)]);
    let key = description.key.as_deref().map(KeyTemplate::parse).transpose();
    let read = [
        description.promise.parse::<Promise>().map(|promise| spec.promise = promise).map_err(of("promise")),
        order.map(|shuffled| spec.shuffled = shuffled),
        description.reset.parse::<Reset>().map(|reset| spec.reset = reset).map_err(of("reset")),
        value.map(|value| spec.value = value),
        description.start.map(position).transpose().map(|start| spec.start = start),
        key.map(|key| spec.key = key).map_err(of("key")),
        rules(description).map(|reject| spec.reject = reject),
        auditing(description.audit).map(|audit| spec.audit = audit),
    ];
    let errors: Vec<FieldError> = read.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(spec) } else { Err(FieldErrors(errors)) }
}

/// Reads a description that a store kept.
pub fn read_spec(name: &SeriesName, text: &str) -> Result<SeriesSpec, Box<str>> {
    let description = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(spec(&description, name.clone()).map_err(|errors| errors.to_string())?)
}

fn rules(description: &Description) -> Result<Reject, FieldError> {
    let reject = Reject::default().with_restricted(&description.restrict).map_err(of("restrict"))?;
    match &description.reject {
        Some(rules) => Ok(reject.with_digits(rules.parse().map_err(of("reject"))?)),
        None => Ok(reject),
    }
}

fn limits(settings: &LimitSettings) -> Limits {
    let LimitSettings { lease_min, lease_max, watermark_percent, waiters_max, scopes_max } = *settings;
    Limits { lease_min, lease_max, watermark_percent, waiters_max, scopes_max }
}

fn auditing(setting: AuditSetting) -> Result<Auditing, FieldError> {
    match setting {
        AuditSetting::Switch(false) => Ok(Auditing::Off),
        AuditSetting::Switch(true) => Ok(Auditing::On(None)),
        AuditSetting::Kept(AuditRetention { retention_hours: hours @ 1..=HOURS_MAX }) => {
            Ok(Auditing::On(Some(Duration::from_hours(hours))))
        }
        AuditSetting::Kept(AuditRetention { retention_hours }) => {
            Err(of("audit")(format!("retention_hours is {retention_hours}; it may be 1 to {HOURS_MAX}")))
        }
    }
}

fn position(start: u64) -> Result<Position, FieldError> {
    Position::new(start).ok_or_else(|| of("start")("positions end at 9007199254740991"))
}

fn one_of<T: Copy>(field: &'static str, text: &str, known: &[(&str, T)]) -> Result<T, FieldError> {
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ");
    let found = known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| of(field)(format!("expected {}, not {:?}", names(), cut(text))))
}

pub(crate) fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}

fn of<E: ToString>(field: &'static str) -> impl Fn(E) -> FieldError {
    move |error| FieldError { field, problem: error.to_string().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(audit: &str) -> Result<Auditing, String> {
        let text = format!(r#"{{"pattern":"{{seq}}","audit":{audit}}}"#);
        let description: Description = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let name = "n".parse().map_err(|_| "a name")?;
        let spec = spec(&description, name).map_err(|error| error.to_string())?;
        let kept: Description = serde_json::from_str(&spec.description).expect("it was written");
        assert_eq!(kept, description);
        Ok(spec.audit)
    }

    #[test]
    fn an_audit_is_a_switch_or_says_how_long_it_is_kept() {
        assert_eq!(read("false"), Ok(Auditing::Off));
        assert_eq!(read("true"), Ok(Auditing::On(None)));
        assert_eq!(read(r#"{"retention_hours":24}"#), Ok(Auditing::On(Some(Duration::from_hours(24)))));
        for (wrong, told) in [
            ("1", "expected true, false, or a map with retention_hours"),
            (r#""yes""#, "expected true, false, or a map with retention_hours"),
            ("{}", "missing field `retention_hours`"),
            (r#"{"retention_hours":0}"#, "audit: retention_hours is 0; it may be 1 to 876000"),
            (r#"{"hours":1}"#, "unknown field `hours`"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_series_without_an_audit_is_written_as_ever() {
        let plain = serde_json::from_str(r#"{"pattern":"{seq}"}"#).expect("a description");
        let spec = spec(&plain, "n".parse().expect("a name")).expect("it is good");
        assert!(!spec.description.contains("audit"));
    }

    #[test]
    fn a_description_has_the_limits_of_the_core_unless_it_says_others() {
        assert_eq!(limits(&LimitSettings::default()), Limits::default());
    }
}
