//! The promise of a series, and its definition, which decides the text of each position. A store pins both.

use std::fmt;
use std::str::FromStr;

use bates_pattern::nearest;

use super::SeriesName;
use crate::named::named;

/// The promise of a series. It decides how numbers are handed out; a front end never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promise {
    /// Never twice.
    Unique,
    /// Never twice, and a number answered before another was asked for is smaller.
    Ordered,
    /// Ordered, and each number is recorded in the commit that issues it, so every gap has a reason.
    Gapless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromiseChange {
    /// The expected current promise.
    pub from: Promise,
    pub to: Promise,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromiseDecision {
    Change,
    /// The series has the new promise already.
    Keep,
    /// The series has another promise than the expected one.
    Refuse,
}

impl PromiseChange {
    /// A promise that is not pinned yet counts as the expected one.
    pub fn decide(self, pinned: Option<Promise>) -> PromiseDecision {
        match pinned.unwrap_or(self.from) {
            _ if pinned == Some(self.to) => PromiseDecision::Keep,
            promise if promise == self.from => PromiseDecision::Change,
            _ => PromiseDecision::Refuse,
        }
    }
}

named!(Promise { Unique = "unique", Ordered = "ordered", Gapless = "gapless" });

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a promise: {hint}")]
pub struct PromiseError {
    given: Box<str>,
    hint: Box<str>,
}

impl FromStr for Promise {
    type Err = PromiseError;

    fn from_str(text: &str) -> Result<Self, PromiseError> {
        Self::from_name(text).ok_or_else(|| {
            let near = nearest(text, [Self::Unique, Self::Ordered, Self::Gapless].map(Self::name));
            let expected = || "expected unique, ordered or gapless".to_owned();
            let hint = near.map_or_else(expected, |near| format!("did you mean {near}?"));
            PromiseError { given: text.into(), hint: hint.into() }
        })
    }
}

/// Pinned for ever by the first use of the series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub series: SeriesName,
    pub template: Box<str>,
    /// The names of a scope's parameters, sorted, separated by spaces: they are its identity.
    pub parameters: Box<str>,
    pub shuffled: bool,
    pub start: u64,
    /// As the pattern writes it.
    pub reset: Box<str>,
    pub time_zone: Box<str>,
    /// The version of the mapping.
    pub construction: u16,
    /// Pinned too; only [`change_promise`](crate::SeriesStore::change_promise) changes it. `None` where it does not
    /// matter, and in stores from before promises were pinned.
    pub promise: Option<Promise>,
    /// The rejection rules as text. Not pinned; the store keeps them to detect a change.
    pub rules: Option<Box<str>>,
}

impl Definition {
    /// Stored instead of rules that have changed.
    pub const RULES_CHANGED: &str = "changed";

    /// The rules to store from now on, if a series with this definition is opened as `asked` and they differ.
    pub fn rules_to_keep<'r>(&self, asked: &'r Self) -> Option<&'r str> {
        match (self.rules.as_deref(), asked.rules.as_deref()) {
            (None, asked) => asked,
            (Some(Self::RULES_CHANGED), _) | (_, None) => None,
            (Some(stored), Some(asked)) => (stored != asked).then_some(Self::RULES_CHANGED),
        }
    }

    /// The first field that differs, with both values.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let fields = |of: &Self| {
            [
                ("template", of.template.to_string()),
                ("parameters", of.parameters.to_string()),
                ("order", if of.shuffled { "shuffled" } else { "counting" }.to_owned()),
                ("start", of.start.to_string()),
                ("reset", of.reset.to_string()),
                ("time zone", of.time_zone.to_string()),
                ("construction", of.construction.to_string()),
            ]
        };
        if let (Some(ours), Some(theirs)) = (self.promise, other.promise)
            && ours != theirs
        {
            return Some(("promise", ours.to_string(), theirs.to_string()));
        }
        let mut pairs = fields(self).into_iter().zip(fields(other));
        pairs.find(|(ours, theirs)| ours != theirs).map(|((name, ours), (_, theirs))| (name, ours, theirs))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescriptionChange {
    /// The expected current description.
    pub before: Option<Box<str>>,
    /// `None` retires the series.
    pub after: Option<Box<str>>,
    /// The expected current revision of the store, if the change was checked against all other series: two nodes must not
    /// create series with one key at the same time.
    pub revision: Option<u64>,
}

impl DescriptionChange {
    /// Whether the change may be written. A description that was changed already is written again.
    pub fn fits(&self, stored: Option<&str>, revision: u64) -> bool {
        let is_checked = self.revision.is_none_or(|expected| expected == revision);
        stored == self.after.as_deref() || is_checked && stored == self.before.as_deref()
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct PinOutcome {
    pub permutation_key: Option<Vec<u8>>,
    pub is_new: bool,
    pub has_changed_rules: bool,
}

impl PinOutcome {
    /// The outcome for a series pinned earlier, opened as `asked`.
    pub fn of_pinned(pinned: &Definition, asked: &Definition, permutation_key: Option<Vec<u8>>) -> Self {
        let rules = pinned.rules_to_keep(asked).or(pinned.rules.as_deref());
        Self { permutation_key, is_new: false, has_changed_rules: rules == Some(Definition::RULES_CHANGED) }
    }
}

impl fmt::Debug for PinOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.permutation_key.as_ref().map(|_| "…");
        f.debug_struct("PinOutcome")
            .field("permutation_key", &key)
            .field("is_new", &self.is_new)
            .field("has_changed_rules", &self.has_changed_rules)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_changes_only_from_the_expected_one_and_only_once() {
        for (from, to) in Promise::ALL.into_iter().flat_map(|from| Promise::ALL.map(|to| (from, to))) {
            for pinned in [None].into_iter().chain(Promise::ALL.map(Some)) {
                let expected = match pinned {
                    Some(promise) if promise == to => PromiseDecision::Keep,
                    Some(promise) if promise != from => PromiseDecision::Refuse,
                    _ => PromiseDecision::Change,
                };
                assert_eq!(PromiseChange { from, to }.decide(pinned), expected, "{pinned:?}: {from} to {to}");
            }
        }
    }
}
