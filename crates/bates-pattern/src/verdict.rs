//! The reasons why a text is not an identifier, each with a stable code and a message.

use crate::check::Check;
use crate::reject::DigitRule;

/// Whether a text could be an identifier of a pattern, and if not, why. Only the store knows whether it was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub(crate) reasons: Vec<Reason>,
}

impl Verdict {
    /// Whether the text could be an identifier.
    pub fn is_valid(&self) -> bool {
        self.reasons.is_empty()
    }

    /// All reasons why the text is not an identifier; empty if it is valid.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }
}

/// One reason why a text is not an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant shows its fields")]
pub enum Reason {
    /// The wrong length, for a pattern whose identifiers all have the same length.
    #[error("has {found} characters instead of {expected}")]
    Length { expected: usize, found: usize },
    /// The text does not match the template at this column, counted in characters from 1.
    #[error("column {column}: expected {expected}")]
    Shape { column: usize, expected: Box<str> },
    /// No date has the parts that the text shows.
    #[error("shows a date that does not exist")]
    Date,
    /// The check characters are wrong.
    #[error("fails its {} check", check.name())]
    Checksum { check: Check },
    /// The position would be beyond the last one, so the text is never issued.
    #[error("lies past the last position, 2^53 - 1, and is never issued")]
    Unreachable,
    /// These digits break a rule; its limit is 0 if it has none.
    #[error("{}", describe_broken_rule(*rule, *limit, found))]
    Digits { rule: DigitRule, limit: usize, found: Box<str> },
    /// The text contains a restricted digit string or word, named as it is listed.
    #[error("contains the restricted {word:?}")]
    Restricted { word: Box<str> },
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

fn describe_broken_rule(rule: DigitRule, limit: usize, found: &str) -> String {
    match rule {
        DigitRule::NotStartWith => format!("must not begin with {found}"),
        DigitRule::RepeatingDigit => format!("has equal digits too close together (limit {limit}): {found}"),
        DigitRule::EvenRun => format!("has {limit} even digits in a row: {found}"),
        DigitRule::Sequence => format!("has {limit} digits in sequence: {found}"),
        DigitRule::RepeatingBlock => format!("repeats a block of {limit} digits: {found}"),
        DigitRule::FirstEqualsLast => format!("ends with its first {limit} digits"),
        DigitRule::FirstEqualsReverseLast => format!("ends with its first {limit} digits in reverse"),
        DigitRule::Cyclic => format!("contains the cyclic number {found}"),
    }
}

/// A text that is not an identifier of the pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ParseError {
    /// The first reason.
    pub reason: Reason,
}
