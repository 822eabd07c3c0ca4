//! Rule: words that make a sentence hard to read can only become rarer. Owns `tidy-words.txt`: lines of
//! `count  phrase`. Must never raise a count; a change that needs that edits the file by hand and says why.

use std::cmp::Ordering;

use super::{finding::Finding, tree::Source};

/// One line of the list.
struct Entry<'a> {
    count: usize,
    phrase: &'a str,
}

pub(super) fn check(list: &str, text: &str, files: &[&Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| is_entry(line)) {
        let Some(Entry { count, phrase }) = parse(line) else {
            findings.push(Finding::new(list, number, "is not `count  phrase`"));
            continue;
        };
        let found = count_all(files, phrase);
        let message = match found.cmp(&count) {
            Ordering::Greater => {
                let used = files.iter().filter(|file| count_in(&file.text, phrase) > 0);
                let places = used.map(|file| &*file.path).take(5).collect::<Vec<_>>().join(", ");
                format!("`{phrase}` occurs {found} times, more than {count}: say it plainly (in {places} …)")
            }
            Ordering::Less => format!("`{phrase}` has become rarer: write `{}`", render(found, phrase)),
            Ordering::Equal => continue,
        };
        findings.push(Finding::new(list, number, message));
    }
    findings
}

/// The same text with every count lowered to the current one.
pub(super) fn bless(text: &str, files: &[&Source]) -> String {
    let lines = text.lines().map(|line| match parse(line).filter(|_| is_entry(line)) {
        Some(Entry { count, phrase }) => render(count_all(files, phrase).min(count), phrase),
        None => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

fn is_entry(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

fn parse(line: &str) -> Option<Entry<'_>> {
    let (count, phrase) = line.trim().split_once(' ')?;
    Some(Entry { count: count.parse().ok()?, phrase: phrase.trim() })
}

fn render(count: usize, phrase: &str) -> String {
    format!("{count:>4}  {phrase}")
}

fn count_all(files: &[&Source], phrase: &str) -> usize {
    files.iter().map(|file| count_in(&file.text, phrase)).sum()
}

/// Counts the phrase in prose and in names: `is_told` reads like `is told`, whatever the case.
fn count_in(text: &str, phrase: &str) -> usize {
    // `Option::is_none` is code, not prose.
    let words = text.to_lowercase().replace(".is_none", "").replace("::is_none", "").replace('_', " ");
    let is_inside = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
    let stands_alone = |at: usize| {
        !is_inside(words[..at].chars().next_back()) && !is_inside(words[at + phrase.len()..].chars().next())
    };
    words.match_indices(phrase).filter(|(at, _)| stands_alone(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Only falls.\n   2  green tea\n";

    fn messages(list: &str, text: &str) -> Vec<String> {
        let file = Source::planted("a.rs", text);
        check("list", list, &[&file]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_phrase_is_counted_in_prose_and_in_names_and_not_inside_words() {
        assert_eq!(count_in("Green tea, fn green_tea() {} evergreen teapot", "green tea"), 2);
    }

    #[test]
    fn a_count_may_stay_and_may_not_rise() {
        assert_eq!(messages(LIST, "green tea green_tea"), [""; 0]);
        let risen = messages(LIST, "green tea green tea green tea");
        assert!(risen[0].starts_with("list:2: `green tea` occurs 3 times, more than 2"), "{risen:?}");
        assert!(risen[0].contains("a.rs"), "{risen:?}");
    }

    #[test]
    fn a_finding_for_a_rarer_phrase_shows_the_new_line() {
        assert_eq!(
            messages(LIST, "green tea"),
            ["list:2: `green tea` has become rarer: write `   1  green tea`"]
        );
        let file = Source::planted("a.rs", "green tea");
        assert_eq!(bless(LIST, &[&file]), "# Only falls.\n   1  green tea\n");
        let more = Source::planted("a.rs", "green tea green tea green tea");
        assert_eq!(bless(LIST, &[&more]), LIST, "blessing never raises a count");
    }

    #[test]
    fn a_line_without_a_count_is_found() {
        assert_eq!(messages("many teas\n", ""), ["list:1: is not `count  phrase`"]);
    }
}
