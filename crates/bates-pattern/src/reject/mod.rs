//! What may not be issued: rule sets about digits, and lists of restricted digit strings or words.
//!
//! The rules look at the characters of `{seq}` and `{check}` alone: parameters, dates and literals are the
//! user's own words. Rejection only filters. A position indexes the unfiltered order, so a rule that comes
//! or goes moves no identifier.

mod digits;
mod limits;
mod restricted;

pub use digits::{DigitRule, DigitRules, Reading};
pub use limits::{Limits, LimitsError};
pub use restricted::RestrictedError;

use crate::verdict::Reason;
use restricted::Restricted;

/// What a pattern skips. Empty by default.
#[derive(Clone, Debug, Default)]
pub struct Reject {
    digits: Option<DigitRules>,
    restricted: Option<Restricted>,
}

impl Reject {
    /// With a rule set about digits.
    #[must_use]
    pub fn with_digits(mut self, rules: DigitRules) -> Self {
        self.digits = Some(rules);
        self
    }

    /// With a list of digit strings or words that may not occur, in any mixture of cases.
    pub fn with_restricted<W: AsRef<str>>(mut self, words: &[W]) -> Result<Self, RestrictedError> {
        self.restricted = if words.is_empty() { None } else { Some(Restricted::new(words)?) };
        Ok(self)
    }

    /// Whether nothing is rejected.
    pub fn is_empty(&self) -> bool {
        self.digits.is_none() && self.restricted.is_none()
    }

    /// The rule set about digits.
    pub fn digit_rules(&self) -> Option<&DigitRules> {
        self.digits.as_ref()
    }

    /// The digit strings or words that may not occur.
    pub fn restricted(&self) -> impl Iterator<Item = &str> {
        self.restricted.iter().flat_map(Restricted::words)
    }

    /// Whether `body`, the characters of `{seq}` and `{check}`, may be issued. Stops at the first broken rule.
    pub(crate) fn accepts(&self, body: &[u8]) -> bool {
        self.digits.as_ref().is_none_or(|rules| rules.broken(body).next().is_none())
            && self.restricted.as_ref().is_none_or(|words| !words.occur(body))
    }

    /// Whether nothing that begins with `body` may be issued, whatever follows. May say no too late, never
    /// too early.
    pub(crate) fn refuses_start(&self, body: &[u8]) -> bool {
        self.digits.as_ref().is_some_and(|rules| rules.broken_for_good(body))
            || self.restricted.as_ref().is_some_and(|words| words.occur(body))
    }

    pub(crate) fn explain(&self, body: &[u8], reasons: &mut Vec<Reason>) {
        if let Some(rules) = &self.digits {
            reasons.extend(rules.broken(body).map(|(rule, found)| Reason::Digits {
                rule,
                limit: rules.limit(rule),
                found: String::from_utf8_lossy(&body[found]).into(),
            }));
        }
        if let Some(words) = &self.restricted {
            reasons.extend(words.found(body).map(|word| Reason::Restricted { word: word.into() }));
        }
    }
}
