//! The audit: who took which positions, how and when. Owns what a record is; the machine decides what is recorded.

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    Http,
    Resp,
    Pool,
    Document,
    /// Reserved for a document that another system saves.
    Reservation,
    /// Taken by the program that contains the machine.
    Library,
}

impl How {
    pub const ALL: [Self; 6] =
        [Self::Http, Self::Resp, Self::Pool, Self::Document, Self::Reservation, Self::Library];

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

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|how| how.name() == name)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who asks for numbers, and how. Used only where a series is audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By<'a> {
    /// The name of a token, an address, or a pool.
    pub who: &'a str,
    pub how: How,
}

impl<'a> By<'a> {
    pub const fn http(who: &'a str) -> Self {
        Self { who, how: How::Http }
    }

    pub const fn resp(who: &'a str) -> Self {
        Self { who, how: How::Resp }
    }

    pub const fn library(who: &'a str) -> Self {
        Self { who, how: How::Library }
    }

    /// Stores keep times to the microsecond.
    pub fn at(self, now: Timestamp) -> Taking {
        let at = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        Taking { who: self.who.into(), how: self.how, at }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taking {
    /// The name of a token, an address, or a pool.
    pub who: Box<str>,
    pub how: How,
    /// To the microsecond, by the clock of the machine that issued.
    pub at: Timestamp,
}

/// One range that a caller took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Makes writing idempotent: a record written twice is there once.
    pub id: Uuid,
    pub place: Place,
    pub range: Lease,
    pub first: Box<str>,
    pub last: Box<str>,
    /// How many numbers: fewer than positions where rules reject some.
    pub count: u64,
    pub taking: Taking,
}

impl Record {
    /// Positions taken as they are, without being rendered.
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

    /// The numbers `of` among `all`, which came from the range; `None` if there are none.
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

    pub fn of_document(id: Uuid, place: &Place, position: Position, number: &str, taking: &Taking) -> Self {
        let (first, last) = (number.into(), number.into());
        let (place, range) = (place.clone(), Lease::one(position));
        Self { id, place, range, first, last, count: 1, taking: taking.clone() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auditing {
    #[default]
    Off,
    /// For ever, or for this time.
    On(Option<Duration>),
}

impl Auditing {
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On(_))
    }

    /// `None` keeps records for ever.
    pub const fn retention(self) -> Option<Duration> {
        match self {
            Self::On(retention) => retention,
            Self::Off => None,
        }
    }
}

/// Which records; a filter that is `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFilter {
    pub series: Option<SeriesName>,
    pub scope: Option<ScopeKey>,
    /// Records that cover this position.
    pub position: Option<Position>,
    pub who: Option<Box<str>>,
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
}
