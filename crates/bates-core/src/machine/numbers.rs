//! Rendered numbers.

use bates_pattern::{Position, Scope};

use crate::range::{PositionRange, TakenPositions};
use crate::series::ListValue;

/// Numbers as text, in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    value: ListValue,
    text: Vec<u8>,
    each: Vec<Number>,
}

/// Where one number, and its sequence part, stand in the text. Small, because an answer has up to 100,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    position: Position,
    start: u32,
    seq_start: u32,
    seq_end: u32,
    end: u32,
}

impl Numbers {
    pub(crate) fn of(value: ListValue) -> Self {
        Self { value, ..Self::default() }
    }

    /// The numbers of the positions that the rules accept.
    pub fn rendered(scope: &Scope, range: PositionRange, value: ListValue) -> Self {
        let mut numbers = Self::of(value);
        numbers.add(scope, &range.into());
        numbers
    }

    pub fn len(&self) -> usize {
        self.each.len()
    }

    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Position, &str)> {
        self.each.iter().map(|number| (number.position, self.text(number.start, number.end)))
    }

    /// The list element of each number: the whole, or the sequence part, as the series is configured.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values_as(self.value)
    }

    pub fn values_as(&self, value: ListValue) -> impl ExactSizeIterator<Item = &str> {
        self.each.iter().map(move |number| match value {
            ListValue::Id => self.text(number.start, number.end),
            ListValue::Seq => self.text(number.seq_start, number.seq_end),
        })
    }

    pub(crate) fn number(&self, at: usize) -> Option<&str> {
        self.each.get(at).map(|number| self.text(number.start, number.end))
    }

    pub(crate) fn positions_from(&self, begin: usize) -> impl Iterator<Item = Position> {
        self.each.iter().skip(begin).map(|number| number.position)
    }

    pub(crate) fn add(&mut self, scope: &Scope, taken: &TakenPositions) {
        for range in taken.ranges() {
            let bounds = Position::new(range.from()).zip(Position::new(range.to() - 1));
            let Some((first, last)) = bounds else { continue };
            let mut walk = scope.accepted(first, last);
            let mut start = offset(self.text.len());
            while let Some(position) = walk.next_into(&mut self.text) {
                let end = offset(self.text.len());
                let seq = scope.seq_range((end - start) as usize);
                let (seq_start, seq_end) = (start + offset(seq.start), start + offset(seq.end));
                self.each.push(Number { position, start, seq_start, seq_end, end });
                start = end;
            }
        }
    }

    fn text(&self, start: u32, end: u32) -> &str {
        std::str::from_utf8(&self.text[start as usize..end as usize]).expect("a pattern renders UTF-8")
    }
}

fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("the numbers of one call are shorter than 4 GiB")
}
