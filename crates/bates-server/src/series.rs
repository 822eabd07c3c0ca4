//! Parses the description of a series into the specification that the core checks. Must never decide which series are
//! allowed: that is a rule of the core.

use std::time::Duration;

use bates_api::{AuditRetention, AuditSetting, LimitSettings, SeriesDescription};
use bates_core::{AuditPolicy, KeyTemplate, Limits, ListValue, Promise, SeriesName, SeriesSpec};
use bates_pattern::{DigitRules, LimitsError, Position, Reject, Reset};

const RETENTION_HOURS_MAX: u64 = 100 * 365 * 24;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    pub field: &'static str,
    pub problem: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct FieldErrors(pub Vec<FieldError>);

/// Builds the specification of a described series, or reports every field that is invalid.
pub fn build_spec(description: &SeriesDescription, name: SeriesName) -> Result<SeriesSpec, FieldErrors> {
    build_with(description, name, str::parse)
}

type ParseRules = fn(&str) -> Result<DigitRules, LimitsError>;

fn build_with(
    description: &SeriesDescription,
    name: SeriesName,
    parse_rules: ParseRules,
) -> Result<SeriesSpec, FieldErrors> {
    // Serialized again, so that the same series always has the same text.
    let text = serde_json::to_string(description).expect("all keys of a description are strings");
    let mut spec = SeriesSpec {
        time_zone: description.time_zone.as_str().into(),
        limits: to_limits(&description.limits),
        has_sink: description.sink.is_some(),
        offered_sink: description.sink.as_deref().map(Into::into),
        has_pool: description.pool.is_some(),
        offered_pool: description.pool.as_deref().map(Into::into),
        description: text.into(),
        ..SeriesSpec::new(name, &description.pattern)
    };
    let order = parse_choice("order", &description.order, &[("counting", false), ("shuffled", true)]);
    let value = parse_choice("value", &description.value, &[("id", ListValue::Id), ("seq", ListValue::Seq)]);
    let promise = description.promise.parse::<Promise>().map_err(in_field("promise"));
    let reset = description.reset.parse::<Reset>().map_err(in_field("reset"));
    let key = description.key.as_deref().map(KeyTemplate::parse).transpose().map_err(in_field("key"));
    let fields = [
        promise.map(|promise| spec.promise = promise),
        order.map(|shuffled| spec.shuffled = shuffled),
        reset.map(|reset| spec.reset = reset),
        value.map(|value| spec.value = value),
        description.start.map(parse_start).transpose().map(|start| spec.start = start),
        key.map(|key| spec.key = key),
        parse_reject(description, parse_rules).map(|reject| spec.reject = reject),
        parse_audit(description.audit).map(|audit| spec.audit = audit),
    ];
    let errors: Vec<FieldError> = fields.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(spec) } else { Err(FieldErrors(errors)) }
}

/// Parses a description that is stored in the database. It may have more rules than a new one: a server must open the series
/// that an earlier version accepted.
pub fn parse_spec(name: &SeriesName, text: &str) -> Result<SeriesSpec, Box<str>> {
    let description = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let spec = build_with(&description, name.clone(), DigitRules::parse_of_any_size);
    Ok(spec.map_err(|errors| errors.to_string())?)
}

fn parse_reject(description: &SeriesDescription, parse_rules: ParseRules) -> Result<Reject, FieldError> {
    let reject = Reject::default().with_restricted(&description.restrict).map_err(in_field("restrict"))?;
    let Some(rules) = &description.reject else { return Ok(reject) };
    Ok(reject.with_digits(parse_rules(rules).map_err(in_field("reject"))?))
}

fn to_limits(settings: &LimitSettings) -> Limits {
    let LimitSettings { lease_min, lease_max, watermark_percent, waiters_max, scopes_max } = *settings;
    Limits { lease_min, lease_max, watermark_percent, waiters_max, scopes_max }
}

fn parse_audit(setting: AuditSetting) -> Result<AuditPolicy, FieldError> {
    match setting {
        AuditSetting::Switch(false) => Ok(AuditPolicy::Off),
        AuditSetting::Switch(true) => Ok(AuditPolicy::On(None)),
        AuditSetting::Retained(AuditRetention { retention_hours: hours @ 1..=RETENTION_HOURS_MAX }) => {
            Ok(AuditPolicy::On(Some(Duration::from_hours(hours))))
        }
        AuditSetting::Retained(AuditRetention { retention_hours }) => Err(in_field("audit")(format!(
            "retention_hours is {retention_hours}; expected 1 to {RETENTION_HOURS_MAX}"
        ))),
    }
}

fn parse_start(start: u64) -> Result<Position, FieldError> {
    let too_large = || in_field("start")(format!("{start} is too large; the maximum is 9007199254740991"));
    Position::new(start).ok_or_else(too_large)
}

fn parse_choice<T: Copy>(field: &'static str, text: &str, choices: &[(&str, T)]) -> Result<T, FieldError> {
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ");
    let choice = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    choice.ok_or_else(|| in_field(field)(format!("expected {}, not {:?}", names(), truncate(text))))
}

/// The beginning of a text that a client sent, short enough for an error message.
pub(crate) fn truncate(text: &str) -> String {
    text.chars().take(64).collect()
}

fn in_field<E: ToString>(field: &'static str) -> impl Fn(E) -> FieldError {
    move |error| FieldError { field, problem: error.to_string().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(audit: &str) -> Result<AuditPolicy, String> {
        let text = format!(r#"{{"pattern":"{{seq}}","audit":{audit}}}"#);
        let description: SeriesDescription = serde_json::from_str(&text).map_err(|it| it.to_string())?;
        let name = "n".parse().map_err(|_| "a name")?;
        let spec = build_spec(&description, name).map_err(|error| error.to_string())?;
        let stored: SeriesDescription = serde_json::from_str(&spec.description).expect("valid JSON");
        assert_eq!(stored, description);
        Ok(spec.audit)
    }

    #[test]
    fn an_audit_setting_is_a_bool_or_a_retention() {
        assert_eq!(parse("false"), Ok(AuditPolicy::Off));
        assert_eq!(parse("true"), Ok(AuditPolicy::On(None)));
        assert_eq!(parse(r#"{"retention_hours":24}"#), Ok(AuditPolicy::On(Some(Duration::from_hours(24)))));
        for (wrong, message) in [
            ("1", "expected true, false, or a map with retention_hours"),
            (r#""yes""#, "expected true, false, or a map with retention_hours"),
            ("{}", "missing field `retention_hours`"),
            (r#"{"retention_hours":0}"#, "audit: retention_hours is 0; expected 1 to 876000"),
            (r#"{"hours":1}"#, "unknown field `hours`"),
        ] {
            let error = parse(wrong).expect_err(wrong);
            assert!(error.contains(message), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_stored_description_omits_an_audit_that_is_off() {
        let plain = serde_json::from_str(r#"{"pattern":"{seq}"}"#).expect("a description");
        let spec = build_spec(&plain, "n".parse().expect("a name")).expect("a valid description");
        assert!(!spec.description.contains("audit"));
    }

    #[test]
    fn a_stored_series_keeps_more_rules_than_a_new_one_may_have() {
        let starts: Vec<String> = (100..300).map(|start| start.to_string()).collect();
        let text =
            format!(r#"{{"pattern":"{{seq:9}}","reject":"openg2p:not_start_with={}"}}"#, starts.join("|"));
        let name: SeriesName = "n".parse().expect("a name");
        let description = serde_json::from_str(&text).expect("a description");
        let refused = build_spec(&description, name.clone()).expect_err("too many entries");
        assert_eq!(refused.to_string(), "reject: not_start_with has 200 entries; the limit is 100");
        let stored = parse_spec(&name, &text).expect("it was accepted once");
        assert_eq!(stored.reject.given_count(), 200);
    }

    #[test]
    fn default_limits_are_those_of_the_core() {
        assert_eq!(to_limits(&LimitSettings::default()), Limits::default());
    }
}
