//! The audit: who took which positions, how and when. Owns the records; the machine decides what is recorded.

mod machine;

use std::time::Duration;

use bates_pattern::Position;
use jiff::Timestamp;
use uuid::Uuid;

use crate::caller::SeriesSet;
use crate::machine::Numbers;
use crate::named::named;
use crate::range::PositionRange;
use crate::scope::{ScopeFilter, ScopeId};
use crate::series::{OpenScope, SeriesName};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    Http,
    Resp,
    Pool,
    Document,
    /// Reserved for a document that another system saves.
    Reservation,
    /// Taken by the program that contains the machine.
    Library,
    /// Done by a command on the store itself.
    Command,
    /// Done by the server itself.
    Server,
}

named!(Channel {
    Http = "http",
    Resp = "resp",
    Pool = "pool",
    Document = "document",
    Reservation = "reservation",
    Library = "library",
    Command = "command",
    Server = "server",
});

/// Who asks for numbers or changes something, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    /// The name of a token, an address, or a pool.
    pub caller: &'a str,
    pub channel: Channel,
}

impl<'a> Actor<'a> {
    pub const fn http(caller: &'a str) -> Self {
        Self { caller, channel: Channel::Http }
    }

    pub const fn resp(caller: &'a str) -> Self {
        Self { caller, channel: Channel::Resp }
    }

    pub const fn library(caller: &'a str) -> Self {
        Self { caller, channel: Channel::Library }
    }

    pub const fn command(user: &'a str) -> Self {
        Self { caller: user, channel: Channel::Command }
    }

    /// Stores keep times to the microsecond.
    pub fn stamp(self, now: Timestamp) -> AuditStamp {
        let at = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        AuditStamp { caller: self.caller.into(), channel: self.channel, at }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditStamp {
    /// The name of a token, an address, or a pool.
    pub caller: Box<str>,
    pub channel: Channel,
    /// To the microsecond, by the clock of the machine that issued.
    pub at: Timestamp,
}

/// A range of positions that a caller took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Makes a write idempotent: a store keeps one record for each id.
    pub id: Uuid,
    pub scope_id: ScopeId,
    pub range: PositionRange,
    pub first: Box<str>,
    pub last: Box<str>,
    /// How many numbers. Fewer than positions, if the rules reject some.
    pub count: u64,
    pub stamp: AuditStamp,
}

impl AuditRecord {
    /// For a caller that takes positions, and not their numbers.
    pub(crate) fn of_positions(
        id: Uuid,
        open: &OpenScope<'_>,
        range: PositionRange,
        stamp: &AuditStamp,
    ) -> Self {
        let number = |position| {
            let number = Position::new(position).and_then(|position| open.scope.number(position).ok());
            number.unwrap_or_default().into()
        };
        let (first, last) = (number(range.from()), number(range.to() - 1));
        let (scope_id, stamp) = (open.scope_id.clone(), stamp.clone());
        Self { id, scope_id, range, first, last, count: range.count(), stamp }
    }

    /// `span` are the indexes of the numbers in `all` that came from the range. `None` if there are none.
    pub(crate) fn of_numbers(
        id: Uuid,
        scope_id: &ScopeId,
        range: PositionRange,
        all: &Numbers,
        span: std::ops::Range<usize>,
        stamp: &AuditStamp,
    ) -> Option<Self> {
        let count = span.len() as u64;
        let (first, last) = (all.number(span.start)?.into(), all.number(span.end.checked_sub(1)?)?.into());
        let (scope_id, stamp) = (scope_id.clone(), stamp.clone());
        (count > 0).then_some(Self { id, scope_id, range, first, last, count, stamp })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditPolicy {
    #[default]
    Off,
    /// Records are kept this long; `None` keeps them forever.
    On(Option<Duration>),
}

impl AuditPolicy {
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On(_))
    }

    /// `None` keeps records forever.
    pub const fn retention(self) -> Option<Duration> {
        match self {
            Self::On(retention) => retention,
            Self::Off => None,
        }
    }
}

/// A field that is `None` matches every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only series in this set.
    pub among: SeriesSet,
    pub series: Option<SeriesName>,
    pub scope: Option<ScopeFilter>,
    /// Records that cover this position.
    pub position: Option<Position>,
    pub caller: Option<Box<str>>,
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
}
