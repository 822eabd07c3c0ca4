//! Restricted digit strings and words, found in one pass however long the list is.

use aho_corasick::AhoCorasick;

const WORDS_MAX: usize = 10_000;

/// No identifier's number part is longer than 66 characters; a longer word could never occur.
const WORD_BYTES_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Restricted {
    words: Box<[Box<str>]>,
    automaton: AhoCorasick,
}

/// A list of restricted words that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestrictedError {
    /// A word that is empty, too long, or holds what no number part can.
    #[error("{0:?} cannot be restricted: a word is 1 to 64 visible ASCII characters")]
    Word(Box<str>),
    /// A list that is too long.
    #[error("{0} restricted words; the limit is 10,000")]
    TooMany(usize),
}

impl Restricted {
    pub(crate) fn new<W: AsRef<str>>(words: &[W]) -> Result<Self, RestrictedError> {
        if words.len() > WORDS_MAX {
            return Err(RestrictedError::TooMany(words.len()));
        }
        let mut words: Vec<Box<str>> = words.iter().map(|word| word.as_ref().into()).collect();
        words.sort_unstable();
        words.dedup();
        let fits = |word: &str| {
            (1..=WORD_BYTES_MAX).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_graphic())
        };
        if let Some(word) = words.iter().find(|word| !fits(word)) {
            return Err(RestrictedError::Word(word.chars().take(WORD_BYTES_MAX).collect::<String>().into()));
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(words.iter().map(|word| word.as_bytes()))
            .expect("640,000 bytes of words fit an automaton");
        Ok(Self { words: words.into(), automaton })
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }

    pub(super) fn occur(&self, body: &[u8]) -> bool {
        self.automaton.is_match(body)
    }

    /// Each word that occurs, once.
    pub(super) fn found(&self, body: &[u8]) -> impl Iterator<Item = &str> {
        let mut found: Vec<_> =
            self.automaton.find_overlapping_iter(body).map(|hit| hit.pattern().as_usize()).collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|index| &*self.words[index])
    }
}
