//! A series as it is described, and what may speak against it.

use bates_pattern::{Pattern, PatternError, Position, Reject, Reset};

use super::{Limits, Promise, SeriesName, Value, open};
use crate::audit::Auditing;
use crate::code::Code;
use crate::scope::KeyTemplate;
use crate::store::StoreError;

/// A series as a configuration describes it.
#[derive(Clone, Debug)]
pub struct SeriesSpec {
    /// Its name.
    pub name: SeriesName,
    /// The template of its pattern.
    pub template: Box<str>,
    /// What it promises.
    pub promise: Promise,
    /// Whether positions walk a keyed permutation. The key is made once and kept in the store.
    pub shuffled: bool,
    /// What is skipped.
    pub reject: Reject,
    /// When the numbering starts again.
    pub reset: Reset,
    /// The time zone in which a business date is taken, by its IANA name.
    pub time_zone: Box<str>,
    /// What lists of its numbers hold.
    pub value: Value,
    /// The first position; by default 1 where the text counts in decimal, 0 otherwise.
    pub start: Option<Position>,
    /// How Redis keys name its scopes.
    pub key: Option<KeyTemplate>,
    /// The limits within which it is handed out.
    pub limits: Limits,
    /// Whether it is recorded who took which numbers. Decides no text, so it may change at any time.
    pub audit: Auditing,
    /// Whether its documents are delivered somewhere.
    pub has_sink: bool,
    /// The words of whoever described it, kept as they are for whoever asks.
    pub description: Box<str>,
}

impl SeriesSpec {
    /// A series that counts from the start of its pattern and promises nothing more than it must.
    pub fn new(name: SeriesName, template: &str) -> Self {
        Self {
            name,
            template: template.into(),
            promise: Promise::Unique,
            shuffled: false,
            reject: Reject::default(),
            reset: Reset::Never,
            time_zone: "UTC".into(),
            value: Value::Id,
            start: None,
            key: None,
            limits: Limits::default(),
            audit: Auditing::Off,
            has_sink: false,
            description: "".into(),
        }
    }

    /// Judges the description without a store. Answers its pattern, in a mock order if shuffled, and first position.
    pub fn check(&self) -> Result<(Pattern, Position), MachineError> {
        open::judge(self).map(|judged| (judged.pattern, judged.start))
    }

    /// The names of a scope's parameters, sorted.
    pub fn parameters(&self, pattern: &Pattern) -> Vec<String> {
        open::parameters(self, pattern)
    }

    /// Refuses two series that could not be told apart.
    pub fn check_apart(&self, other: &Self) -> Result<(), MachineError> {
        if self.name == other.name {
            return Err(MachineError::Twice(self.name.clone()));
        }
        match (&self.key, &other.key) {
            (Some(key), Some(other_key)) if key.may_meet(other_key) => Err(MachineError::KeysMeet {
                first: other.name.clone(),
                first_key: other_key.to_string().into(),
                second: self.name.clone(),
                second_key: key.to_string().into(),
            }),
            _ => Ok(()),
        }
    }

    /// Whether `other` is the same but for limits, rejection rules, audit and promise, which may change.
    pub(crate) fn differs_in_what_may_change_only(&self, other: &Self) -> bool {
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

/// A machine that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A template that was refused.
    #[error("series {series:?}: template {template:?}: {error}")]
    Pattern {
        /// The series.
        series: SeriesName,
        /// Its template.
        template: Box<str>,
        /// Why.
        error: PatternError,
    },
    /// Two series of one name.
    #[error("series {0:?} is described twice")]
    Twice(SeriesName),
    /// Two series whose keys may be the same.
    #[error("series {first:?} and {second:?}: their keys {first_key} and {second_key} could be the same")]
    KeysMeet {
        /// One series.
        first: SeriesName,
        /// Its key.
        first_key: Box<str>,
        /// The other series.
        second: SeriesName,
        /// Its key.
        second_key: Box<str>,
    },
    /// A parameter of the pattern that the key does not have.
    #[error("series {series:?}: key {key} does not name the parameter {{{parameter}}} of the pattern")]
    KeyLacks {
        /// The series.
        series: SeriesName,
        /// Its key.
        key: Box<str>,
        /// The parameter.
        parameter: Box<str>,
    },
    /// A time zone that nobody knows.
    #[error("series {series:?}: {name:?} is no time zone: expected a name such as UTC or Europe/Berlin")]
    TimeZone {
        /// The series.
        series: SeriesName,
        /// What was given.
        name: Box<str>,
    },
    /// A first position behind the last.
    #[error("series {series:?}: start {start} lies behind {last}, the last position of the pattern")]
    Start {
        /// The series.
        series: SeriesName,
        /// The first position.
        start: u64,
        /// The last position.
        last: u64,
    },
    /// A promise that the series could not keep.
    #[error("series {series:?}: promise {}: {problem}", promise.name())]
    Promise {
        /// The series.
        series: SeriesName,
        /// What was to be promised.
        promise: Promise,
        /// Why it cannot be.
        problem: &'static str,
    },
    /// Rules that reject every number.
    #[error("series {0:?}: its rules reject every number")]
    Empty(SeriesName),
    /// A description in the store that cannot be read.
    #[error("series {series:?}, which was made at run time: {problem}")]
    Unreadable {
        /// The series.
        series: SeriesName,
        /// Why.
        problem: Box<str>,
    },
    /// Limits that make no sense.
    #[error("series {series:?}: {problem}")]
    Limits {
        /// The series.
        series: SeriesName,
        /// Why.
        problem: &'static str,
    },
    /// Nodes hold numbers of the series and do not answer, so its promise was not changed.
    #[error(
        "the promise of series {series:?} was not changed: {holders} hold numbers of it in memory and do not answer. \
         Stop these nodes and try again"
    )]
    Held {
        /// The series.
        series: SeriesName,
        /// Which nodes.
        holders: Box<str>,
    },
    /// The promise was changed, and nodes still hold numbers that were granted before.
    #[error(
        "the promise of series {series:?} is changed but not kept yet: {holders} hold numbers that were granted before, \
         may issue them out of order, and do not answer. Stop these nodes and try again"
    )]
    StillHeld {
        /// The series.
        series: SeriesName,
        /// Which nodes.
        holders: Box<str>,
    },
    /// Another node changed the series at the same time.
    #[error("series {0:?} was changed by another call at the same time: look at it, and try again")]
    ChangedMeanwhile(SeriesName),
    /// A series of that name is there with another description.
    #[error("series {0:?} is there with another description")]
    Exists(SeriesName),
    /// The configuration describes the series.
    #[error("series {0:?} is described in the configuration and cannot be changed at run time")]
    InFile(SeriesName),
    /// There is no series of that name.
    #[error("there is no series {0:?}")]
    Unknown(SeriesName),
    /// There are as many series as there may be.
    #[error("there are {0} series, the limit")]
    TooMany(usize),
    /// The machine is closing.
    #[error("the numbering machine is stopping")]
    Stopping,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No randomness for a key.
    #[error("cannot make a permutation key: {0}")]
    NoRandomness(Box<str>),
}

impl MachineError {
    /// The field of a description that it is about.
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::Pattern { .. } => Some("pattern"),
            Self::KeysMeet { .. } | Self::KeyLacks { .. } => Some("key"),
            Self::TimeZone { .. } => Some("time_zone"),
            Self::Start { .. } => Some("start"),
            Self::Limits { .. } => Some("limits"),
            Self::Promise { .. } => Some("promise"),
            _ => None,
        }
    }

    /// The stable code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::Pattern { .. }
            | Self::Twice(_)
            | Self::KeyLacks { .. }
            | Self::TimeZone { .. }
            | Self::Start { .. }
            | Self::Promise { .. }
            | Self::Empty(_)
            | Self::Unreadable { .. }
            | Self::Limits { .. } => Code::BAD_SERIES,
            Self::KeysMeet { .. } => Code::KEYS_MEET,
            Self::Exists(_) | Self::ChangedMeanwhile(_) => Code::SERIES_EXISTS,
            Self::InFile(_) => Code::SERIES_IN_FILE,
            Self::Unknown(_) => Code::UNKNOWN_SERIES,
            Self::TooMany(_) => Code::TOO_MANY_SERIES,
            Self::Stopping => Code::STOPPING,
            Self::Store(error) => error.code(),
            Self::NoRandomness(_) | Self::Held { .. } | Self::StillHeld { .. } => Code::STORE_UNAVAILABLE,
        }
    }
}
