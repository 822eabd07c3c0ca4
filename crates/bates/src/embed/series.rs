//! A series as a program describes it, with the settings of the configuration file. The core checks it when it is opened.

use std::mem::take;
use std::time::Duration;

use bates_core::{AuditPolicy, KeyTemplate, Limits, Promise, SeriesName, SeriesSpec, Sink};
use bates_pattern::{Position, Reset};

use super::error::{Error, Result};

/// A series: its name, its pattern and its settings.
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
    /// A unique series that counts from 1 if its numbers are decimal, and from 0 otherwise.
    pub fn new(name: &str, pattern: &str) -> Self {
        let spec = name.parse().map(|name: SeriesName| SeriesSpec::new(name, pattern));
        let spec = spec.map_err(|error| wrong(name, "name", &error));
        Self { name: name.into(), spec, restrict: Vec::new(), sink: None }
    }

    /// The promise about its numbers.
    pub fn promise(self, promise: Promise) -> Self {
        self.set(|spec| spec.promise = promise)
    }

    /// Its first position.
    pub fn start(self, start: u64) -> Self {
        self.try_set("start", |spec| {
            spec.start = Some(Position::new(start).ok_or("the maximum is 9007199254740991")?);
            Ok::<_, &str>(())
        })
    }

    /// Follows a keyed permutation instead of counting, so that the next number cannot be guessed.
    pub fn shuffled(self) -> Self {
        self.set(|spec| spec.shuffled = true)
    }

    /// The template of keys that name its scopes, as in `seq:{conversation}`: for parameters that the pattern does not show.
    pub fn key(self, key: &str) -> Self {
        self.try_set("key", |spec| KeyTemplate::parse(key).map(|key| spec.key = Some(key)))
    }

    /// When the numbering starts again.
    pub fn reset(self, reset: Reset) -> Self {
        self.set(|spec| spec.reset = reset)
    }

    /// The time zone of business dates, by its IANA name.
    pub fn time_zone(self, name: &str) -> Self {
        self.set(|spec| spec.time_zone = name.into())
    }

    /// A rule set that numbers must satisfy: `openg2p` or `mosip`, with settings as in `openg2p:even_run=2`.
    pub fn reject(self, rules: &str) -> Self {
        self.try_set("reject", |spec| {
            rules.parse().map(|rules| spec.reject = take(&mut spec.reject).with_digits(rules))
        })
    }

    /// Digits or words that must not occur in a number.
    pub fn restrict<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.restrict.extend(words.into_iter().map(Into::into));
        self
    }

    /// Limits of the dispenser; [`Limits::crash_skip_max`] is how many positions of a scope a crash can skip.
    pub fn limits(self, limits: Limits) -> Self {
        self.set(|spec| spec.limits = limits)
    }

    /// Records which caller took which numbers, before a call returns, and keeps the records forever.
    pub fn audited(self) -> Self {
        self.set(|spec| spec.audit = AuditPolicy::On(None))
    }

    /// As [`Self::audited`], but removes a record after this time.
    pub fn audited_for(self, retention: Duration) -> Self {
        self.set(|spec| spec.audit = AuditPolicy::On(Some(retention)))
    }

    /// The sink that receives its documents, at least once. Without a sink, documents are refused.
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
