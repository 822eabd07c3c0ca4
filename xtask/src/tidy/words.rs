//! Rule: no unfinished code: no notes to self, no debugging print, no skipped test. Must never spell these words
//! whole, or it would find itself.

use super::{finding::Finding, tree::Source};

const WORDS: [(&str, &str); 5] = [
    (concat!("TO", "DO"), "finish it or open an issue"),
    (concat!("FIX", "ME"), "fix it or open an issue"),
    (concat!("to", "do!"), "finish it"),
    (concat!("db", "g!("), "remove the debugging print"),
    (concat!("#[", "ignore"), "a skipped test proves nothing: run it or remove it"),
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().flat_map(check_one).collect()
}

fn check_one(source: &Source) -> impl Iterator<Item = Finding> {
    source.text.lines().zip(1..).flat_map(move |(text, line)| {
        let found = WORDS.iter().filter(move |(word, _)| contains_word(text, word));
        found.map(move |(word, cure)| Finding::new(&source.path, line, format!("`{word}`: {cure}")))
    })
}

/// Whether the text contains the word on its own, not inside another word such as AUTODOC.
fn contains_word(text: &str, word: &str) -> bool {
    let is_inside = |neighbour: Option<char>| neighbour.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let ends_in_letter = word.ends_with(char::is_alphanumeric);
    text.match_indices(word).any(|(at, _)| {
        let before = is_inside(text[..at].chars().next_back());
        let after = ends_in_letter && is_inside(text[at + word.len()..].chars().next());
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unfinished_word_is_found_on_its_line() {
        for (word, _) in WORDS {
            let findings = check(&[Source::planted("a.rs", &format!("//! Owns a.\n    {word} x\n"))]);
            assert_eq!(findings.len(), 1, "{word}");
            assert_eq!(findings[0].line, 2);
        }
    }

    #[test]
    fn a_word_inside_another_passes() {
        let inside = format!("AU{}C MY_{}_LIST", WORDS[0].0, WORDS[0].0);
        assert_eq!(check(&[Source::planted("a.rs", &inside)]), []);
    }

    #[test]
    fn finished_code_passes() {
        assert_eq!(check(&[Source::planted("a.rs", "//! Owns a.\n\n#[test]\nfn a() {}\n")]), []);
    }
}
