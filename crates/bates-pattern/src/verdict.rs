//! What is wrong with a text: every reason, each with a stable code and a sentence.

use std::fmt;

use crate::check::Check;
use crate::reject::DigitRule;

/// Whether a text could be an identifier of a pattern, and if not, everything that speaks against it.
///
/// A verdict is about structure: shape, check characters and rules. Whether the identifier was issued is a
/// question to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub(crate) reasons: Vec<Reason>,
}

impl Verdict {
    /// Whether nothing speaks against it.
    pub fn is_valid(&self) -> bool {
        self.reasons.is_empty()
    }

    /// What speaks against it.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }
}

/// One thing that speaks against a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Too short or too long for a pattern of fixed length.
    Length {
        /// The length of every identifier, in characters.
        expected: usize,
        /// The length of the text, in characters.
        found: usize,
    },
    /// The text leaves the template.
    Shape {
        /// Where, counted in characters from 1.
        column: usize,
        /// What the template has there.
        expected: Box<str>,
    },
    /// The parts of the date shown belong to no one date.
    Date,
    /// The check characters do not fit what they cover.
    Checksum {
        /// The algorithm.
        check: Check,
    },
    /// No position renders to it: the value lies past the last position.
    Unreachable,
    /// A rule about digits is broken.
    Digits {
        /// The rule.
        rule: DigitRule,
        /// Its limit; 0 where it has none.
        limit: usize,
        /// The digits that break it.
        found: Box<str>,
    },
    /// A restricted digit string or word occurs.
    Restricted {
        /// As it stands in the list.
        word: Box<str>,
    },
}

impl Reason {
    /// The stable code of the reason.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Length { .. } => "length",
            Self::Shape { .. } => "shape",
            Self::Date => "date",
            Self::Checksum { .. } => "checksum",
            Self::Unreachable => "unreachable",
            Self::Digits { rule, .. } => rule.code(),
            Self::Restricted { .. } => "restricted",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, found } => write!(f, "has {found} characters instead of {expected}"),
            Self::Shape { column, expected } => write!(f, "column {column}: expected {expected}"),
            Self::Date => f.write_str("shows a date that does not exist"),
            Self::Checksum { check } => write!(f, "fails its {} check", check.name()),
            Self::Unreachable => f.write_str("lies past the last position, 2^53 - 1, and is never issued"),
            Self::Restricted { word } => write!(f, "contains the restricted {word:?}"),
            Self::Digits { rule, limit, found } => fmt_digits(f, *rule, *limit, found),
        }
    }
}

fn fmt_digits(f: &mut fmt::Formatter<'_>, rule: DigitRule, limit: usize, found: &str) -> fmt::Result {
    match rule {
        DigitRule::NotStartWith => write!(f, "may not begin with {found}"),
        DigitRule::RepeatingDigit => {
            write!(f, "has equal digits too close together (limit {limit}): {found}")
        }
        DigitRule::EvenRun => write!(f, "has {limit} even digits in a row: {found}"),
        DigitRule::Sequence => write!(f, "has {limit} digits in sequence: {found}"),
        DigitRule::RepeatingBlock => write!(f, "repeats a block of {limit} digits: {found}"),
        DigitRule::FirstEqualsLast => write!(f, "ends with its first {limit} digits"),
        DigitRule::FirstEqualsReverseLast => write!(f, "ends with its first {limit} digits backwards"),
        DigitRule::Cyclic => write!(f, "contains the cyclic number {found}"),
    }
}

/// A text that is no identifier of the pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ParseError {
    /// What speaks against it first.
    pub reason: Reason,
}
