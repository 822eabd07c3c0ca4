//! A number that was taken: a position, rendered when it is read.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bates_pattern::{Position, Scope};
use uuid::Uuid;

use crate::source::Positions;

/// A number that was taken. It is rendered when it is written: `to_string()`, or `{}` in a format.
#[derive(Clone)]
pub struct Number<'p> {
    pub(crate) held: Held,
    pub(crate) scope: &'p OnceLock<Arc<Scope>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Position(u64),
    Written(Box<Written>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) lease: Uuid,
    text: Box<str>,
    /// The last is its position; the rules reject those before it.
    pub(crate) stretch: Range<u64>,
}

impl Number<'_> {
    /// The position in the scope.
    #[inline]
    pub fn position(&self) -> Position {
        position(match &self.held {
            Held::Position(position) => *position,
            Held::Written(written) => written.stretch.end - 1,
        })
    }

    /// Appends the number to a buffer.
    pub fn render(&self, out: &mut Vec<u8>) {
        match &self.held {
            Held::Written(written) => out.extend_from_slice(written.text.as_bytes()),
            Held::Position(at) => {
                let scope = self.scope.get().expect("the scope came with the first positions");
                scope.render(position(*at), out).expect("a source gives positions of the pattern");
            }
        }
    }
}

/// Inside the crate positions are plain integers, which the shards pack into words.
#[inline]
pub(crate) fn position(value: u64) -> Position {
    Position::new(value).expect("it came from a source as a position")
}

pub(crate) fn half_open(positions: &Positions) -> Range<u64> {
    positions.start().value()..positions.end().value() + 1
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            Held::Written(written) => f.pad(&written.text),
            Held::Position(_) => {
                let mut text = Vec::with_capacity(32);
                self.render(&mut text);
                f.pad(std::str::from_utf8(&text).expect("a pattern renders UTF-8"))
            }
        }
    }
}

impl fmt::Debug for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (position, text) = (self.position().value(), self.to_string());
        f.debug_struct("Number").field("position", &position).field("text", &text).finish()
    }
}

impl From<Number<'_>> for String {
    fn from(number: Number<'_>) -> Self {
        match number.held {
            Held::Written(written) => written.text.into(),
            Held::Position(_) => number.to_string(),
        }
    }
}

impl Written {
    /// Numbers of a lease, each with the positions between it and the one before in the same range.
    pub(crate) fn all_of(
        lease: Uuid,
        numbers: Vec<(Position, Box<str>)>,
        ranges: Vec<Positions>,
    ) -> impl Iterator<Item = Self> {
        let (mut after, mut ranges) = (None, ranges.into_iter().peekable());
        numbers.into_iter().map(move |(position, text)| {
            // Positions between two ranges are not of this lease.
            while ranges.next_if(|range| *range.end() < position).is_some() {
                after = None;
            }
            let end = position.value() + 1;
            let start = after.replace(end).filter(|start| *start < end).unwrap_or(end - 1);
            Self { lease, text, stretch: start..end }
        })
    }
}
