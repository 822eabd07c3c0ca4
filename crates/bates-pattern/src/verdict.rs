//! The reasons why a text is no identifier, each with a stable code and a sentence.

use crate::check::Check;
use crate::reject::DigitRule;

/// Whether a text could be an identifier of a pattern, and all reasons against it. Only the store knows if it was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub(crate) reasons: Vec<Reason>,
}

impl Verdict {
    /// Whether there is no reason against it.
    pub fn is_valid(&self) -> bool {
        self.reasons.is_empty()
    }

    /// All reasons against it.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }
}

/// One reason against a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Too short or too long for a pattern of fixed length.
    #[error("has {found} characters instead of {expected}")]
    Length {
        /// The length of every identifier, in characters.
        expected: usize,
        /// The length of the text, in characters.
        found: usize,
    },
    /// The text leaves the template.
    #[error("column {column}: expected {expected}")]
    Shape {
        /// Where, counted in characters from 1.
        column: usize,
        /// What the template has there.
        expected: Box<str>,
    },
    /// The parts of the date shown belong to no one date.
    #[error("shows a date that does not exist")]
    Date,
    /// The check characters do not fit what they cover.
    #[error("fails its {} check", check.name())]
    Checksum {
        /// The algorithm.
        check: Check,
    },
    /// No position renders to it: the value lies past the last position.
    #[error("lies past the last position, 2^53 - 1, and is never issued")]
    Unreachable,
    /// A rule about digits is broken.
    #[error("{}", broken(*rule, *limit, found))]
    Digits {
        /// The rule.
        rule: DigitRule,
        /// Its limit; 0 where it has none.
        limit: usize,
        /// The digits that break it.
        found: Box<str>,
    },
    /// A restricted digit string or word occurs.
    #[error("contains the restricted {word:?}")]
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

fn broken(rule: DigitRule, limit: usize, found: &str) -> String {
    match rule {
        DigitRule::NotStartWith => format!("may not begin with {found}"),
        DigitRule::RepeatingDigit => format!("has equal digits too close together (limit {limit}): {found}"),
        DigitRule::EvenRun => format!("has {limit} even digits in a row: {found}"),
        DigitRule::Sequence => format!("has {limit} digits in sequence: {found}"),
        DigitRule::RepeatingBlock => format!("repeats a block of {limit} digits: {found}"),
        DigitRule::FirstEqualsLast => format!("ends with its first {limit} digits"),
        DigitRule::FirstEqualsReverseLast => format!("ends with its first {limit} digits backwards"),
        DigitRule::Cyclic => format!("contains the cyclic number {found}"),
    }
}

/// A text that is no identifier of the pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ParseError {
    /// The first reason against it.
    pub reason: Reason,
}
