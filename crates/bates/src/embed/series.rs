//! A series as a program describes it, in the words of the configuration file. The core judges it when it is opened.

use std::mem::take;
use std::time::Duration;

use bates_core::{AuditPolicy, KeyTemplate, Limits, Promise, SeriesName, SeriesSpec, Sink};
use bates_pattern::{Position, Reset};

use super::error::{Error, Result};

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
#[must_use]
pub struct Series {
    name: Box<str>,
    /// An error is returned when the folder is opened.
    spec: Result<SeriesSpec>,
    restrict: Vec<String>,
    sink: Option<Box<dyn Sink>>,
}

impl Series {
    /// A series that is unique and counts from 1 where its text is decimal, else from 0.
    pub fn new(name: &str, pattern: &str) -> Self {
        let spec = name.parse().map(|name: SeriesName| SeriesSpec::new(name, pattern));
        let spec = spec.map_err(|error| wrong(name, "name", &error));
        Self { name: name.into(), spec, restrict: Vec::new(), sink: None }
    }

    /// What is promised of its numbers.
    pub fn promise(self, promise: Promise) -> Self {
        self.set(|spec| spec.promise = promise)
    }

    /// Its first position.
    pub fn start(self, start: u64) -> Self {
        self.try_set("start", |spec| {
            spec.start = Some(Position::new(start).ok_or("positions end at 9007199254740991")?);
            Ok::<_, &str>(())
        })
    }

    /// Walks a keyed permutation instead of counting: the next number cannot be guessed.
    pub fn shuffled(self) -> Self {
        self.set(|spec| spec.shuffled = true)
    }

    /// How keys name its scopes, as in `seq:{conversation}`: for parameters that the pattern does not show.
    pub fn key(self, key: &str) -> Self {
        self.try_set("key", |spec| KeyTemplate::parse(key).map(|key| spec.key = Some(key)))
    }

    /// When the numbering starts again.
    pub fn reset(self, reset: Reset) -> Self {
        self.set(|spec| spec.reset = reset)
    }

    /// Where a day begins, by its IANA name.
    pub fn time_zone(self, name: &str) -> Self {
        self.set(|spec| spec.time_zone = name.into())
    }

    /// A rule set that numbers must keep: `openg2p` or `mosip`, with settings as in `openg2p:even_run=2`.
    pub fn reject(self, rules: &str) -> Self {
        self.try_set("reject", |spec| {
            rules.parse().map(|rules| spec.reject = take(&mut spec.reject).with_digits(rules))
        })
    }

    /// Digits or words that may not occur in a number.
    pub fn restrict<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.restrict.extend(words.into_iter().map(Into::into));
        self
    }

    /// The limits within which it is handed out; `lease_max` bounds what a crash can skip.
    pub fn limits(self, limits: Limits) -> Self {
        self.set(|spec| spec.limits = limits)
    }

    /// Records who took which numbers, before they are answered, for ever.
    pub fn audited(self) -> Self {
        self.set(|spec| spec.audit = AuditPolicy::On(None))
    }

    /// The same, and removes a record after this time.
    pub fn audited_for(self, retention: Duration) -> Self {
        self.set(|spec| spec.audit = AuditPolicy::On(Some(retention)))
    }

    /// Where its documents are delivered, at least once. Without one a document is refused.
    pub fn sink(mut self, sink: impl Sink) -> Self {
        self.sink = Some(Box::new(sink));
        self.set(|spec| spec.has_sink = true)
    }

    fn set(mut self, set: impl FnOnce(&mut SeriesSpec)) -> Self {
        let _ = self.spec.as_mut().map(set);
        self
    }

    fn try_set<E: ToString>(
        mut self,
        field: &'static str,
        set: impl FnOnce(&mut SeriesSpec) -> Result<(), E>,
    ) -> Self {
        if let Ok(spec) = &mut self.spec
            && let Err(error) = set(spec)
        {
            self.spec = Err(wrong(&self.name, field, &error));
        }
        self
    }

    pub(super) fn described(self) -> Result<(SeriesSpec, Option<Box<dyn Sink>>)> {
        let spec = self.spec?;
        let reject = spec.reject.with_restricted(&self.restrict);
        let reject = reject.map_err(|error| wrong(&self.name, "restrict", &error))?;
        Ok((SeriesSpec { reject, ..spec }, self.sink))
    }
}

fn wrong(series: &str, field: &'static str, problem: &impl ToString) -> Error {
    Error::BadSeries { series: series.into(), field, problem: problem.to_string().into() }
}
