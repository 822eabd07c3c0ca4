//! A series as a program describes it, in the words of the configuration file.
//!
//! Owns the spelling. What a series may be is judged by the core when it is opened.

use std::time::Duration;

use bates_core::{Auditing, KeyTemplate, Limits, Promise, SeriesSpec, Sink, Value};
use bates_pattern::{Position, Reject, Reset};

use super::Error;

/// A series: what is numbered, and how its numbers read.
///
/// ```
/// use bates::{Promise, Reset, Series};
///
/// let document = Series::new("document", "{project}-{type}-{seq}").start(1001);
/// let short = Series::new("short", "{seq:base62:6}").shuffled();
/// let farmer = Series::new("farmer", "{seq:11}{check:verhoeff}").shuffled().reject("openg2p");
/// let conversation = Series::new("conversation", "{seq}").promise(Promise::Ordered).key("seq:{conversation}");
/// let invoice = Series::new("invoice", "INV-{date:%Y}-{seq:6}")
///     .promise(Promise::Gapless)
///     .reset(Reset::Yearly)
///     .time_zone("Europe/Berlin");
/// # let _ = (document, short, farmer, conversation, invoice);
/// ```
pub struct Series {
    name: Box<str>,
    pattern: Box<str>,
    promise: Promise,
    shuffled: bool,
    start: Option<u64>,
    key: Option<Box<str>>,
    reset: Reset,
    time_zone: Box<str>,
    reject: Option<Box<str>>,
    restrict: Vec<String>,
    limits: Limits,
    audit: Auditing,
    sink: Option<Box<dyn Sink>>,
}

impl Series {
    /// A series that is unique and counts from 1 where its text is decimal, else from 0.
    pub fn new(name: &str, pattern: &str) -> Self {
        Self {
            name: name.into(),
            pattern: pattern.into(),
            promise: Promise::Unique,
            shuffled: false,
            start: None,
            key: None,
            reset: Reset::Never,
            time_zone: "UTC".into(),
            reject: None,
            restrict: Vec::new(),
            limits: Limits::default(),
            audit: Auditing::Off,
            sink: None,
        }
    }

    /// What is promised of its numbers.
    #[must_use]
    pub fn promise(mut self, promise: Promise) -> Self {
        self.promise = promise;
        self
    }

    /// Its first position.
    #[must_use]
    pub fn start(mut self, start: u64) -> Self {
        self.start = Some(start);
        self
    }

    /// Walks a keyed permutation instead of counting: the next number cannot be guessed.
    #[must_use]
    pub fn shuffled(mut self) -> Self {
        self.shuffled = true;
        self
    }

    /// How keys name its scopes, as in `seq:{conversation}`: for parameters that the pattern does not show.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.into());
        self
    }

    /// When the numbering starts again.
    #[must_use]
    pub fn reset(mut self, reset: Reset) -> Self {
        self.reset = reset;
        self
    }

    /// Where a day begins, by its IANA name.
    #[must_use]
    pub fn time_zone(mut self, name: &str) -> Self {
        self.time_zone = name.into();
        self
    }

    /// A rule set that numbers must keep: `openg2p` or `mosip`, with settings as in `openg2p:even_run=2`.
    #[must_use]
    pub fn reject(mut self, rules: &str) -> Self {
        self.reject = Some(rules.into());
        self
    }

    /// Digits or words that may not occur in a number.
    #[must_use]
    pub fn restrict<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.restrict.extend(words.into_iter().map(Into::into));
        self
    }

    /// The limits within which it is handed out; `lease_max` bounds what a crash can skip.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Records who took which numbers, before they are answered, for ever.
    #[must_use]
    pub fn audited(mut self) -> Self {
        self.audit = Auditing::On(None);
        self
    }

    /// The same, and removes a record after this time.
    #[must_use]
    pub fn audited_for(mut self, retention: Duration) -> Self {
        self.audit = Auditing::On(Some(retention));
        self
    }

    /// Where its documents are delivered, at least once. Without one a document is refused.
    #[must_use]
    pub fn sink(mut self, sink: impl Sink) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }

    /// What it amounts to for the core, and where its documents go.
    pub(super) fn described(self) -> Result<(SeriesSpec, Option<Box<dyn Sink>>), Error> {
        let name = self.name.parse().map_err(self.wrong("name"))?;
        let start = self.start.map(|start| {
            Position::new(start).ok_or_else(|| self.wrong("start")("positions end at 9007199254740991"))
        });
        let key = self.key.as_deref().map(KeyTemplate::parse).transpose();
        let spec = SeriesSpec {
            promise: self.promise,
            shuffled: self.shuffled,
            reject: self.rules()?,
            reset: self.reset,
            time_zone: self.time_zone.clone(),
            value: Value::Id,
            start: start.transpose()?,
            key: key.map_err(self.wrong("key"))?,
            limits: self.limits,
            audit: self.audit,
            has_sink: self.sink.is_some(),
            ..SeriesSpec::new(name, &self.pattern)
        };
        Ok((spec, self.sink))
    }

    fn rules(&self) -> Result<Reject, Error> {
        let reject = Reject::default().with_restricted(&self.restrict).map_err(self.wrong("restrict"))?;
        match &self.reject {
            Some(rules) => Ok(reject.with_digits(rules.parse().map_err(self.wrong("reject"))?)),
            None => Ok(reject),
        }
    }

    fn wrong<E: ToString>(&self, field: &'static str) -> impl Fn(E) -> Error {
        let series = self.name.clone();
        move |error| Error::Described { series: series.clone(), field, problem: error.to_string().into() }
    }
}
