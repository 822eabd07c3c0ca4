//! The specification of a series, and why it can be refused.

use bates_pattern::{Pattern, PatternError, Position, Reject, Reset, nearest};

use super::{Limits, ListValue, Promise, SeriesName, open};
use crate::audit::AuditPolicy;
use crate::code::ErrorCode;
use crate::scope::KeyTemplate;
use crate::store::StoreError;

/// The description of a series, parsed.
#[derive(Clone, Debug)]
pub struct SeriesSpec {
    pub name: SeriesName,
    pub template: Box<str>,
    pub promise: Promise,
    /// Whether positions walk a keyed permutation. The key is made once and kept in the store.
    pub shuffled: bool,
    pub reject: Reject,
    pub reset: Reset,
    /// The IANA name of the time zone in which a business date is taken.
    pub time_zone: Box<str>,
    pub value: ListValue,
    /// By default 1 where the text counts in decimal, else 0.
    pub start: Option<Position>,
    pub key: Option<KeyTemplate>,
    pub limits: Limits,
    /// Whether the store records who took which numbers. Decides no text, so it may change at any time.
    pub audit: AuditPolicy,
    pub has_sink: bool,
    /// The name of the sink, for a series that was created at run time: a node delivers only to one that its operator
    /// offers to the series.
    pub offered_sink: Option<Box<str>>,
    pub has_pool: bool,
    /// The name of the pool, for a series that was created at run time; as `offered_sink`.
    pub offered_pool: Option<Box<str>>,
    /// The original text of the description, kept verbatim.
    pub description: Box<str>,
}

impl SeriesSpec {
    /// A unique series that counts from the start of its pattern.
    pub fn new(name: SeriesName, template: &str) -> Self {
        Self {
            name,
            template: template.into(),
            promise: Promise::Unique,
            shuffled: false,
            reject: Reject::default(),
            reset: Reset::Never,
            time_zone: "UTC".into(),
            value: ListValue::Id,
            start: None,
            key: None,
            limits: Limits::default(),
            audit: AuditPolicy::Off,
            has_sink: false,
            offered_sink: None,
            has_pool: false,
            offered_pool: None,
            description: "".into(),
        }
    }

    /// Checks the description without a store. A shuffled pattern has a placeholder key.
    pub fn check(&self) -> MachineResult<(Pattern, Position)> {
        open::check_spec(self).map(|checked| (checked.pattern, checked.start))
    }

    /// The parameters of a scope, sorted: those of the key, which names all that the pattern shows, else the pattern's.
    pub fn parameters(&self, pattern: &Pattern) -> Vec<String> {
        let mut names: Vec<&str> = match &self.key {
            Some(key) => key.parameters().collect(),
            None => pattern.parameters().collect(),
        };
        names.sort_unstable();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Refuses two series with the same name or with keys that may overlap.
    pub fn check_distinct_from(&self, other: &Self) -> MachineResult<()> {
        if self.name == other.name {
            return Err(MachineError::Twice(self.name.clone()));
        }
        match (&self.key, &other.key) {
            (Some(key), Some(other_key)) if key.may_overlap(other_key) => Err(MachineError::KeysMeet {
                first: other.name.clone(),
                first_key: other_key.to_string().into(),
                second: self.name.clone(),
                second_key: key.to_string().into(),
            }),
            _ => Ok(()),
        }
    }

    /// Whether `other` is the same but for limits, rejection rules, audit and promise, which may change.
    pub(crate) fn has_same_identity(&self, other: &Self) -> bool {
        self.name == other.name
            && self.template == other.template
            && self.shuffled == other.shuffled
            && self.reset == other.reset
            && self.time_zone == other.time_zone
            && self.value == other.value
            && self.start == other.start
            && self.key == other.key
    }
}

pub(crate) type MachineResult<T> = Result<T, MachineError>;

/// The zone of a city, or a name that is nearly the same.
fn time_zone_hint(name: &str) -> String {
    let known: Vec<String> = jiff::tz::db().available().map(|zone| zone.as_str().to_owned()).collect();
    let city =
        known.iter().find(|zone| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name)));
    match city.map(String::as_str).or_else(|| nearest(name, known.iter().map(String::as_str))) {
        Some(zone) => format!("did you mean {zone}?"),
        None => "expected a name such as UTC or Europe/Berlin".to_owned(),
    }
}

/// Why a series or a machine could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    #[error("series {series:?}: template {template:?}: {error}")]
    Pattern { series: SeriesName, template: Box<str>, error: PatternError },
    #[error("series {0:?} is described twice")]
    Twice(SeriesName),
    #[error("series {first:?} and {second:?}: their keys {first_key} and {second_key} could be the same")]
    KeysMeet { first: SeriesName, first_key: Box<str>, second: SeriesName, second_key: Box<str> },
    #[error("series {series:?}: key {key} does not name the parameter {{{parameter}}} of the pattern")]
    KeyLacks { series: SeriesName, key: Box<str>, parameter: Box<str> },
    #[error("series {series:?}: {name:?} is no time zone: {}", time_zone_hint(name))]
    TimeZone { series: SeriesName, name: Box<str> },
    #[error("series {series:?}: start {start} is greater than {last}, the last position of the pattern")]
    Start { series: SeriesName, start: u64, last: u64 },
    #[error("series {series:?}: promise {}: {problem}", promise.name())]
    Promise { series: SeriesName, promise: Promise, problem: &'static str },
    #[error("series {series:?}: pool: {problem}")]
    Pool { series: SeriesName, problem: &'static str },
    #[error("series {0:?}: its rules reject every number")]
    Empty(SeriesName),
    #[error("series {series:?}, which was created at run time: {problem}")]
    Unreadable { series: SeriesName, problem: Box<str> },
    #[error("series {series:?}: {problem}")]
    Limits { series: SeriesName, problem: &'static str },
    #[error(
        "the promise of series {series:?} was not changed: {holders} hold numbers of it in memory and do not answer. \
         Stop these nodes and try again"
    )]
    Held { series: SeriesName, holders: Box<str> },
    #[error(
        "the promise of series {series:?} is changed but not kept yet: {holders} hold numbers that were granted before, \
         may issue them out of order, and do not answer. Stop these nodes and try again"
    )]
    StillHeld { series: SeriesName, holders: Box<str> },
    #[error("series {0:?} was changed by another call at the same time: look at it, and try again")]
    ChangedMeanwhile(SeriesName),
    #[error("series {0:?} is there with another description")]
    Exists(SeriesName),
    #[error("series {0:?} is described in the configuration and cannot be changed at run time")]
    InFile(SeriesName),
    #[error("there is no series {0:?}")]
    Unknown(SeriesName),
    #[error("there are {0} series, the limit")]
    TooMany(usize),
    #[error(
        "with {words} restricted words of series {series:?} all series together would have {all}; the limit is {max}"
    )]
    TooManyWords { series: SeriesName, words: usize, all: usize, max: usize },
    #[error("the numbering machine is stopping")]
    Stopping,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot make a permutation key: {0}")]
    NoRandomness(Box<str>),
}

impl MachineError {
    /// The field of a description that the error is about.
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::Pattern { .. } => Some("pattern"),
            Self::KeysMeet { .. } | Self::KeyLacks { .. } => Some("key"),
            Self::TimeZone { .. } => Some("time_zone"),
            Self::Start { .. } => Some("start"),
            Self::Limits { .. } => Some("limits"),
            Self::Promise { .. } => Some("promise"),
            Self::Pool { .. } => Some("pool"),
            Self::TooManyWords { .. } => Some("restrict"),
            _ => None,
        }
    }

    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::KeysMeet { .. } => ErrorCode::KEYS_MEET,
            Self::Exists(_) | Self::ChangedMeanwhile(_) => ErrorCode::SERIES_EXISTS,
            Self::InFile(_) => ErrorCode::SERIES_IN_FILE,
            Self::Unknown(_) => ErrorCode::UNKNOWN_SERIES,
            Self::TooMany(_) => ErrorCode::TOO_MANY_SERIES,
            Self::TooManyWords { .. } => ErrorCode::TOO_MANY_WORDS,
            Self::Stopping => ErrorCode::STOPPING,
            Self::Store(error) => error.code(),
            Self::NoRandomness(_) | Self::Held { .. } | Self::StillHeld { .. } => {
                ErrorCode::STORE_UNAVAILABLE
            }
            // All others are about the description.
            _ => ErrorCode::BAD_SERIES,
        }
    }
}
