//! Numbers that must not be issued: rule sets about digits, and restricted digit strings or words. The rules look at
//! the characters of `{seq}` and `{check}`.
//!
//! Invariant: rejection only filters. Adding or removing a rule does not change the position of any identifier.

mod digits;
mod limits;

pub use digits::{DigitRule, DigitRules, RuleSet};
pub use limits::{Limits, LimitsError};

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;

use crate::verdict::Reason;

const WORDS_MAX: usize = 10_000;

/// The maximum width of `{seq}`.
const WORD_BYTES_MAX: usize = 64;

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
        self.restricted.iter().flat_map(|restricted| &restricted.words).map(|word| &**word)
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
            reasons.extend(words.find_in(body).map(|word| Reason::Restricted { word: word.into() }));
        }
    }
}

#[derive(Clone, Debug)]
struct Restricted {
    words: Box<[Box<str>]>,
    automaton: AhoCorasick,
}

/// Why a list of restricted words is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestrictedError {
    /// A word that is empty, too long, or has a character that a number cannot have.
    #[error("invalid restricted word {0:?}: expected 1 to 64 visible ASCII characters")]
    Word(Box<str>),
    /// Too many words.
    #[error("too many restricted words: {0}, the limit is 10,000")]
    TooMany(usize),
}

impl Restricted {
    fn new<W: AsRef<str>>(words: &[W]) -> Result<Self, RestrictedError> {
        if words.len() > WORDS_MAX {
            return Err(RestrictedError::TooMany(words.len()));
        }
        let mut words: Vec<Box<str>> = words.iter().map(|word| word.as_ref().into()).collect();
        words.sort_unstable();
        words.dedup();
        let is_visible = |word: &str| word.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = |word: &str| (1..=WORD_BYTES_MAX).contains(&word.len()) && is_visible(word);
        if let Some(word) = words.iter().find(|word| !fits(word)) {
            return Err(RestrictedError::Word(word.chars().take(WORD_BYTES_MAX).collect::<String>().into()));
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(words.iter().map(|word| word.as_bytes()))
            .expect("640,000 bytes of words fit an automaton");
        Ok(Self { words: words.into(), automaton })
    }

    fn occur_in(&self, body: &[u8]) -> bool {
        self.automaton.is_match(body)
    }

    fn find_in(&self, body: &[u8]) -> impl Iterator<Item = &str> {
        let found = self.automaton.find_overlapping_iter(body).map(|hit| hit.pattern().as_usize());
        let found: BTreeSet<usize> = found.collect();
        found.into_iter().map(|index| &*self.words[index])
    }
}
