//! Restricted digit strings and words, in any case. A short list is an automaton, which is fastest; a long one is a sorted
//! table, because an automaton takes twenty times the memory of its words. Must never copy the words: every compiled
//! pattern and every description of a series shares them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

const WORDS_MAX: usize = 10_000;

/// The maximum width of `{seq}`.
const WORD_BYTES_MAX: usize = 64;

/// 2^17 bits: a list of 10,000 words sets at most a twelfth.
const FILTER_WORDS: usize = 2_048;

/// Longer lists are tables.
const AUTOMATON_BYTES_MAX: usize = 4 * 1024;

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

#[derive(Clone, Debug)]
pub(super) struct Restricted(Arc<Words>);

#[derive(Debug)]
struct Words {
    /// All words in one text, sorted, each once.
    text: Box<str>,
    /// Where each word ends.
    ends: Box<[u32]>,
    /// How many words were given: a description of a series keeps also those that repeat others.
    given_count: usize,
    search: Search,
}

#[derive(Debug)]
enum Search {
    Automaton(AhoCorasick),
    Table(Table),
}

/// Words by their index, in the order of their lower-case texts.
#[derive(Debug)]
struct Table {
    all: Box<[u32]>,
    /// Those that do not begin with another: where a longer one occurs, the other does.
    shortest: Box<[u32]>,
    /// The length of the shortest word.
    length_min: usize,
    /// A bit for the hash of the beginning of each word: few texts need a search.
    filter: Box<[u64]>,
}

impl Restricted {
    pub(super) fn new<W: AsRef<str>>(words: &[W]) -> Result<Self, RestrictedError> {
        if words.len() > WORDS_MAX {
            return Err(RestrictedError::TooMany(words.len()));
        }
        let given_count = words.len();
        let words: BTreeSet<&str> = words.iter().map(AsRef::as_ref).collect();
        let is_visible = |word: &str| word.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = |word: &str| (1..=WORD_BYTES_MAX).contains(&word.len()) && is_visible(word);
        if let Some(word) = words.iter().find(|word| !fits(word)) {
            return Err(RestrictedError::Word(word.chars().take(WORD_BYTES_MAX).collect::<String>().into()));
        }
        let text: String = words.iter().copied().collect();
        let ends = words.iter().scan(0, |end, word| {
            *end += u32::try_from(word.len()).expect("a word has at most 64 bytes");
            Some(*end)
        });
        let ends = ends.collect();
        let is_short = text.len() <= AUTOMATON_BYTES_MAX;
        let search = if is_short { automaton(&words) } else { Search::Table(Table::new(&words)) };
        Ok(Self(Arc::new(Words { text: text.into(), ends, given_count, search })))
    }

    pub(super) fn given_count(&self) -> usize {
        self.0.given_count
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        (0..self.0.ends.len()).map(|index| self.0.word(index))
    }

    pub(super) fn occur_in(&self, body: &[u8]) -> bool {
        match &self.0.search {
            Search::Automaton(automaton) => automaton.is_match(body),
            Search::Table(table) => (0..body.len()).any(|start| table.begins(&self.0, &body[start..])),
        }
    }

    /// Every word that occurs, once and sorted.
    pub(super) fn find_in(&self, body: &[u8]) -> BTreeSet<&str> {
        match &self.0.search {
            Search::Automaton(automaton) => {
                let hits = automaton.find_overlapping_iter(body);
                hits.map(|hit| self.0.word(hit.pattern().as_usize())).collect()
            }
            Search::Table(table) => {
                let starts = 0..body.len();
                starts.flat_map(|start| table.prefixes(&self.0, &body[start..])).collect()
            }
        }
    }
}

/// Not the fastest kind of automaton: that one takes a quarter of a kilobyte for each byte of a word.
fn automaton(words: &BTreeSet<&str>) -> Search {
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(words)
        .expect("4 KiB of words fit an automaton");
    Search::Automaton(automaton)
}

impl Words {
    fn word(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[index] as usize]
    }

    fn bytes(&self, index: u32) -> &[u8] {
        self.word(index as usize).as_bytes()
    }
}

impl Table {
    fn new(words: &BTreeSet<&str>) -> Self {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let count = u32::try_from(words.len()).expect("there are at most 10,000 words");
        let mut all: Box<[u32]> = (0..count).collect();
        all.sort_by(|one, other| compare(words[*one as usize], words[*other as usize]));
        let mut shortest: Vec<u32> = Vec::new();
        for index in &all {
            // In this order, a word that begins with another follows it or a third one that begins with it.
            let begins = |shorter: &u32| starts_with(words[*index as usize], words[*shorter as usize]);
            if !shortest.last().is_some_and(begins) {
                shortest.push(*index);
            }
        }
        let length_min = words.iter().map(|word| word.len()).min().unwrap_or(1);
        let mut filter = vec![0; FILTER_WORDS].into_boxed_slice();
        for word in words {
            let (at, bit) = filter_bit(&word[..length_min]);
            filter[at] |= bit;
        }
        Self { all, shortest: shortest.into(), length_min, filter }
    }

    /// Whether a text begins with a word. Only the last word that does not sort after the text can be one: all words between
    /// a beginning of the text and the text begin with it.
    fn begins(&self, words: &Words, text: &[u8]) -> bool {
        let Some(beginning) = text.get(..self.length_min) else { return false };
        let (at, bit) = filter_bit(beginning);
        if self.filter[at] & bit == 0 {
            return false;
        }
        let after = self.shortest.partition_point(|index| compare(words.bytes(*index), text).is_le());
        after > 0 && starts_with(text, words.bytes(self.shortest[after - 1]))
    }

    /// Every word with which a text begins.
    fn prefixes<'w>(&self, words: &'w Words, text: &[u8]) -> Vec<&'w str> {
        let lengths = 1..=text.len().min(WORD_BYTES_MAX);
        let found = lengths.flat_map(|length| {
            let prefix = &text[..length];
            let first = self.all.partition_point(|index| compare(words.bytes(*index), prefix).is_lt());
            // Several words may differ in case only.
            self.all[first..].iter().take_while(move |index| compare(words.bytes(**index), prefix).is_eq())
        });
        found.map(|index| words.word(*index as usize)).collect()
    }
}

/// Where the filter has the bit of a beginning, by FNV-1a.
fn filter_bit(beginning: &[u8]) -> (usize, u64) {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(16_777_619);
    let hash = beginning.iter().fold(2_166_136_261, mix);
    let hash = (hash ^ (hash >> 15)) as usize;
    (hash / 64 % FILTER_WORDS, 1 << (hash % 64))
}

fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let lower = |bytes: &[u8], at: usize| bytes[at].to_ascii_lowercase();
    let both = one.len().min(other.len());
    let differs = (0..both).find(|at| lower(one, *at) != lower(other, *at));
    differs.map_or_else(|| one.len().cmp(&other.len()), |at| lower(one, at).cmp(&lower(other, at)))
}

fn starts_with(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_search(words: &BTreeSet<&str>, search: Search) -> Restricted {
        let Restricted(built) = Restricted::new(&words.iter().collect::<Vec<_>>()).unwrap();
        Restricted(Arc::new(Words { search, ..Arc::into_inner(built).unwrap() }))
    }

    proptest! {
        #[test]
        fn a_table_finds_the_words_that_an_automaton_finds(
            words in prop::collection::btree_set("[abAB12]{1,4}", 1..40),
            body in "[abAB12]{0,12}",
        ) {
            let words: BTreeSet<&str> = words.iter().map(|word| &**word).collect();
            let automaton = with_search(&words, automaton(&words));
            let table = with_search(&words, Search::Table(Table::new(&words)));
            prop_assert_eq!(automaton.find_in(body.as_bytes()), table.find_in(body.as_bytes()));
            prop_assert_eq!(automaton.occur_in(body.as_bytes()), table.occur_in(body.as_bytes()));
            let found = words.iter().any(|word| body.to_ascii_lowercase().contains(&word.to_ascii_lowercase()));
            prop_assert_eq!(table.occur_in(body.as_bytes()), found);
        }
    }

    #[test]
    fn a_long_list_is_a_table_and_shared_by_its_copies() {
        let words: Vec<String> = (0..10_000).map(|number| format!("{number:064}")).collect();
        let long = Restricted::new(&words).unwrap();
        assert!(matches!(long.0.search, Search::Table(_)));
        assert!(long.occur_in(format!("{:070}", 77).as_bytes()) && !long.occur_in(&[b'1'; 70]));
        assert!(Arc::ptr_eq(&long.clone().0, &long.0));
        assert!(matches!(Restricted::new(&["666"]).unwrap().0.search, Search::Automaton(_)));
    }
}
