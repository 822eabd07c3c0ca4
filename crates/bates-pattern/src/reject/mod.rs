//! Numbers that must not be issued: rule sets about digits, and restricted digit strings or words. The rules look at
//! the characters of `{seq}` and `{check}`.
//!
//! Invariant: rejection only filters. Adding or removing a rule does not change the position of any identifier.

mod digits;
mod limits;
mod restricted;

pub use digits::{DigitRule, DigitRules, RuleSet};
pub use limits::{Limits, LimitsError};
pub use restricted::RestrictedError;

use crate::verdict::Reason;
use restricted::Restricted;

/// The rules that make a pattern skip positions. Empty by default.
#[derive(Clone, Debug, Default)]
pub struct Reject {
    digits: Option<DigitRules>,
    restricted: Option<Restricted>,
}

impl Reject {
    /// Adds a rule set about digits.
    #[must_use]
    pub fn with_digits(mut self, rules: DigitRules) -> Self {
        self.digits = Some(rules);
        self
    }

    /// Sets the digit strings or words that must not occur, in upper, lower or mixed case.
    pub fn with_restricted<W: AsRef<str>>(mut self, words: &[W]) -> Result<Self, RestrictedError> {
        self.restricted = if words.is_empty() { None } else { Some(Restricted::new(words)?) };
        Ok(self)
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.digits.is_none() && self.restricted.is_none()
    }

    /// The rule set about digits.
    pub fn digit_rules(&self) -> Option<&DigitRules> {
        self.digits.as_ref()
    }

    /// The digit strings or words that must not occur.
    pub fn restricted(&self) -> impl Iterator<Item = &str> {
        self.restricted.iter().flat_map(Restricted::words)
    }

    /// How many words and forbidden prefixes were given, each as often as it was given. The default prefixes of a rule set
    /// do not count.
    pub fn given_count(&self) -> usize {
        let words = self.restricted.as_ref().map_or(0, Restricted::given_count);
        words + self.digits.as_ref().map_or(0, DigitRules::given_count)
    }

    /// Whether the rules accept `body`, the characters of `{seq}` and `{check}`. Stops at the first broken rule.
    pub(crate) fn accepts(&self, body: &[u8]) -> bool {
        self.digits.as_ref().is_none_or(|rules| rules.broken_rules(body).next().is_none())
            && self.restricted.as_ref().is_none_or(|words| !words.occur_in(body))
    }

    /// Whether the rules reject every text that begins with `body`. Never `true` if they accept one; may be `false` if they
    /// accept none.
    pub(crate) fn rejects_prefix(&self, body: &[u8]) -> bool {
        self.digits.as_ref().is_some_and(|rules| rules.rejects_prefix(body))
            || self.restricted.as_ref().is_some_and(|words| words.occur_in(body))
    }

    pub(crate) fn explain(&self, body: &[u8], reasons: &mut Vec<Reason>) {
        if let Some(rules) = &self.digits {
            reasons.extend(rules.broken_rules(body).map(|(rule, found)| Reason::Digits {
                rule,
                limit: rules.limit(rule),
                found: String::from_utf8_lossy(&body[found]).into(),
            }));
        }
        if let Some(words) = &self.restricted {
            reasons
                .extend(words.find_in(body).into_iter().map(|word| Reason::Restricted { word: word.into() }));
        }
    }
}
