//! A number in memory: a position that the scope renders, or a text that the source rendered.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bates_pattern::{Number, Position, Scope};
use uuid::Uuid;

use crate::source::Positions;

/// A number that was taken and not rendered yet. Dropping it loses the number.
#[derive(Clone, Debug)]
#[must_use]
pub struct UnrenderedNumber<'p> {
    pub(crate) held: HeldNumber,
    pub(crate) scope: &'p OnceLock<Arc<Scope>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeldNumber {
    Position(u64),
    Written(Box<WrittenNumber>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenNumber {
    pub(crate) lease: Uuid,
    text: Box<str>,
    /// The last is its position; the rules reject those before it.
    pub(crate) positions: Range<u64>,
}

impl UnrenderedNumber<'_> {
    /// The position in the scope.
    #[inline]
    pub fn position(&self) -> Position {
        position(match &self.held {
            HeldNumber::Position(position) => *position,
            HeldNumber::Written(written) => written.positions.end - 1,
        })
    }

    /// Renders the number.
    pub fn into_number(self) -> Number {
        let position = self.position();
        match self.held {
            HeldNumber::Written(written) => Number::new(position, written.text),
            HeldNumber::Position(_) => {
                let mut text = Vec::with_capacity(24);
                self.render(&mut text);
                Number::new(position, String::from_utf8(text).expect("a pattern renders UTF-8"))
            }
        }
    }

    /// Appends the text of the number to a buffer, without an allocation of its own.
    pub fn render(&self, out: &mut Vec<u8>) {
        match &self.held {
            HeldNumber::Written(written) => out.extend_from_slice(written.text.as_bytes()),
            HeldNumber::Position(at) => {
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

impl WrittenNumber {
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
            Self { lease, text, positions: start..end }
        })
    }
}
