//! The audit: who took which positions, how and when, for series that ask for it. Owns what a record is; what is
//! recorded is decided by the machine, which answers nothing of an audited series before its record is durable.

mod machine;

use std::fmt;
use std::time::Duration;

use bates_pattern::{Position, Scope};
use jiff::Timestamp;
use uuid::Uuid;

use crate::machine::Numbers;
use crate::range::Lease;
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;

/// How numbers left the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// Answered over HTTP.
    Http,
    /// Answered in the Redis protocol.
    Resp,
    /// Pushed into a shared pool.
    Pool,
    /// Given to a document.
    Document,
    /// Reserved for a document that somebody else saves.
    Reservation,
    /// Taken by the program that the machine is a part of.
    Library,
}

impl How {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Http, Self::Resp, Self::Pool, Self::Document, Self::Reservation, Self::Library];

    /// As users and stores write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Resp => "resp",
            Self::Pool => "pool",
            Self::Document => "document",
            Self::Reservation => "reservation",
            Self::Library => "library",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|how| how.name() == name)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who asks for numbers, and how. Looked at only where a series is audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By<'a> {
    /// A token by its name, an address, or a pool.
    pub who: &'a str,
    /// How.
    pub how: How,
}

impl<'a> By<'a> {
    /// Somebody over HTTP.
    pub const fn http(who: &'a str) -> Self {
        Self { who, how: How::Http }
    }

    /// Somebody in the Redis protocol.
    pub const fn resp(who: &'a str) -> Self {
        Self { who, how: How::Resp }
    }

    /// A program that has the machine in itself.
    pub const fn library(who: &'a str) -> Self {
        Self { who, how: How::Library }
    }

    /// The same, now. Every store keeps times to the microsecond.
    pub fn at(self, now: Timestamp) -> Taking {
        let at = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        Taking { who: self.who.into(), how: self.how, at }
    }
}

/// Who took numbers, how and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taking {
    /// A token by its name, an address, or a pool.
    pub who: Box<str>,
    /// How.
    pub how: How,
    /// When, to the microsecond, by the clock of the machine that gave them.
    pub at: Timestamp,
}

/// Positions that somebody took: one range, however many numbers it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id for ever: what is written twice is there once.
    pub id: Uuid,
    /// Where.
    pub place: Place,
    /// Which positions.
    pub range: Lease,
    /// The first number, as it was given.
    pub first: Box<str>,
    /// The last number, as it was given.
    pub last: Box<str>,
    /// How many numbers: fewer than positions where rules reject some.
    pub count: u64,
    /// Who, how and when.
    pub taking: Taking,
}

impl Record {
    /// Positions that were taken as they are, without being rendered.
    pub(crate) fn of_positions(
        id: Uuid,
        place: &Place,
        range: Lease,
        scope: &Scope,
        taking: &Taking,
    ) -> Self {
        let number = |position| {
            let number = Position::new(position).and_then(|position| scope.number(position).ok());
            number.unwrap_or_default().into()
        };
        let (first, last) = (number(range.from()), number(range.to() - 1));
        let (place, taking) = (place.clone(), taking.clone());
        Self { id, place, range, first, last, count: range.count(), taking }
    }

    /// The numbers `of` among `all`, which came from the range; `None` if there is none of them.
    pub(crate) fn of_numbers(
        id: Uuid,
        place: &Place,
        range: Lease,
        all: &Numbers,
        of: std::ops::Range<usize>,
        taking: &Taking,
    ) -> Option<Self> {
        let count = of.len() as u64;
        let (first, last) = (all.number(of.start)?.into(), all.number(of.end.checked_sub(1)?)?.into());
        let (place, taking) = (place.clone(), taking.clone());
        (count > 0).then_some(Self { id, place, range, first, last, count, taking })
    }

    /// The number of a document.
    pub fn of_document(id: Uuid, place: &Place, position: Position, number: &str, taking: &Taking) -> Self {
        let (first, last) = (number.into(), number.into());
        let (place, range) = (place.clone(), Lease::one(position));
        Self { id, place, range, first, last, count: 1, taking: taking.clone() }
    }
}

/// Whether a series is audited, and how long its records are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auditing {
    /// It is not.
    #[default]
    Off,
    /// It is, for ever or for this time.
    On(Option<Duration>),
}

impl Auditing {
    /// Whether it is audited.
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On(_))
    }

    /// How long records are kept; `None` for ever.
    pub const fn retention(self) -> Option<Duration> {
        match self {
            Self::On(retention) => retention,
            Self::Off => None,
        }
    }
}

/// Which records. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// Those of a series.
    pub series: Option<SeriesName>,
    /// Those of a scope of any series.
    pub scope: Option<ScopeKey>,
    /// Those that cover this position.
    pub position: Option<Position>,
    /// Those of this caller.
    pub who: Option<Box<str>>,
    /// Those from this moment on.
    pub since: Option<Timestamp>,
    /// Those from before this moment.
    pub until: Option<Timestamp>,
}
