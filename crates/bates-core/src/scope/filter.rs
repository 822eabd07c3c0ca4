//! Which scopes a list shows: one, or all that have some values.

use super::ScopeKey;

/// The words of a scope's key that a scope must have: all of them, or some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeFilter {
    words: ScopeKey,
    is_whole: bool,
}

impl ScopeFilter {
    /// Every scope with these values, whatever its others are. The key need not be one of a scope.
    pub const fn having(values: ScopeKey) -> Self {
        Self { words: values, is_whole: false }
    }

    /// The scope, if the filter names all of it. A store finds it by its key.
    pub fn exact(&self) -> Option<&ScopeKey> {
        self.is_whole.then_some(&self.words)
    }

    /// What the key of a scope must have among its words, which spaces separate: `project=PROJ`, `@2026`. Empty if the
    /// filter names a whole scope.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        // No value holds a space: a word of the filter is a whole word of the key.
        let words = if self.is_whole { "" } else { self.words.as_str() };
        words.split(' ').filter(|word| !word.is_empty())
    }

    pub fn matches(&self, scope: &ScopeKey) -> bool {
        self.exact().is_none_or(|exact| exact == scope)
            && self.words().all(|word| scope.as_str().split(' ').any(|own| own == word))
    }
}

impl From<ScopeKey> for ScopeFilter {
    fn from(scope: ScopeKey) -> Self {
        Self { words: scope, is_whole: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_has_the_values_of_a_filter_or_is_the_whole_of_it() {
        let scope = ScopeKey::from_store("project=PROJ type=9012 @2026");
        for (words, matches, is_same) in [
            ("project=PROJ", true, false),
            ("type=9012 @2026", true, false),
            ("@2026", true, false),
            ("project=PROJ type=9012 @2026", true, true),
            ("project=PRO", false, false),
            ("ect=PROJ", false, false),
            ("@202", false, false),
            ("project=PROJ type=9013", false, false),
        ] {
            let words = ScopeKey::from_store(words);
            assert_eq!(ScopeFilter::having(words.clone()).matches(&scope), matches, "{words}");
            assert_eq!(ScopeFilter::from(words.clone()).matches(&scope), is_same, "{words}");
        }
    }
}
