//! A series in words: what a configuration file and the API both say of one, and what it amounts to.
//!
//! Owns the spelling. What a series may be is judged by the core.

mod audit;

use std::fmt;

use bates_core::{KeyTemplate, Limits, Promise, SeriesName, SeriesSpec, Value};
use bates_pattern::{Position, Reject, Reset};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use audit::{DescribedAudit, KeptAudit};

/// A series as its users describe it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    pub limits: DescribedLimits,
    /// Whether it is recorded who takes its numbers, and for how long that is kept; not unless said.
    #[serde(default, skip_serializing_if = "DescribedAudit::is_off")]
    pub audit: DescribedAudit,
}

/// The limits of a series; what is left out has its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DescribedLimits {
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

impl Default for DescribedLimits {
    fn default() -> Self {
        let Limits { lease_min, lease_max, watermark_percent, waiters_max, scopes_max } = Limits::default();
        Self { lease_min, lease_max, watermark_percent, waiters_max, scopes_max }
    }
}

/// A field of a description that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: Box<str>,
}

/// Every field of a description that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldErrors(pub Vec<FieldError>);

impl std::error::Error for FieldErrors {}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

impl Description {
    /// A description with nothing but a pattern.
    pub fn new(pattern: &str) -> Self {
        Self {
            pattern: pattern.to_owned(),
            promise: unique(),
            order: counting(),
            start: None,
            key: None,
            value: id(),
            reset: never(),
            time_zone: utc(),
            reject: None,
            restrict: Vec::new(),
            limits: DescribedLimits::default(),
            audit: DescribedAudit::default(),
        }
    }

    /// What the description amounts to for a series of that name, or every field that cannot be read.
    pub fn spec(&self, name: SeriesName) -> Result<SeriesSpec, FieldErrors> {
        let promise = self.promise.parse::<Promise>().map_err(of("promise"));
        let shuffled = one_of("order", &self.order, &[("counting", false), ("shuffled", true)]);
        let reset = self.reset.parse::<Reset>().map_err(of("reset"));
        let value = one_of("value", &self.value, &[("id", Value::Id), ("seq", Value::Seq)]);
        let start = self.start.map(position).transpose();
        let key = self.key.as_deref().map(KeyTemplate::parse).transpose().map_err(of("key"));
        let (reject, audit) = (self.rules(), self.audit.auditing());
        match (promise, shuffled, reset, value, start, key, reject, audit) {
            (Ok(promise), Ok(shuffled), Ok(reset), Ok(value), Ok(start), Ok(key), Ok(reject), Ok(audit)) => {
                Ok(SeriesSpec {
                    promise,
                    shuffled,
                    reject,
                    reset,
                    time_zone: self.time_zone.as_str().into(),
                    value,
                    start,
                    key,
                    limits: self.limits.limits(),
                    audit,
                    description: self.text().into(),
                    ..SeriesSpec::new(name, &self.pattern)
                })
            }
            (promise, shuffled, reset, value, start, key, reject, audit) => {
                let first = [promise.err(), shuffled.err(), reset.err(), value.err()];
                let errors = first.into_iter().chain([start.err(), key.err(), reject.err(), audit.err()]);
                Err(FieldErrors(errors.flatten().collect()))
            }
        }
    }

    /// The description that a store kept, or a machine holds.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The series that a store kept the description of.
    pub fn read_spec(name: &SeriesName, text: &str) -> Result<SeriesSpec, Box<str>> {
        let description = Self::read(text).map_err(|error| error.to_string())?;
        Ok(description.spec(name.clone()).map_err(|errors| errors.to_string())?)
    }

    /// As a store keeps it: the same for the same series, however it was written.
    fn text(&self) -> String {
        serde_json::to_string(self).expect("a description has no keys that are not texts")
    }

    fn rules(&self) -> Result<Reject, FieldError> {
        let reject = Reject::default().with_restricted(&self.restrict).map_err(of("restrict"))?;
        match &self.reject {
            Some(rules) => Ok(reject.with_digits(rules.parse().map_err(of("reject"))?)),
            None => Ok(reject),
        }
    }
}

impl DescribedLimits {
    fn limits(&self) -> Limits {
        let Self { lease_min, lease_max, watermark_percent, waiters_max, scopes_max } = *self;
        Limits { lease_min, lease_max, watermark_percent, waiters_max, scopes_max }
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

fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}

fn of<E: ToString>(field: &'static str) -> impl Fn(E) -> FieldError {
    move |error| FieldError { field, problem: error.to_string().into() }
}

fn unique() -> String {
    Promise::Unique.name().to_owned()
}

fn counting() -> String {
    "counting".to_owned()
}

fn id() -> String {
    "id".to_owned()
}

fn never() -> String {
    Reset::Never.to_string()
}

fn utc() -> String {
    "UTC".to_owned()
}
