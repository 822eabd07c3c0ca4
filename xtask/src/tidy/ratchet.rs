//! Rule: files and functions stay short, and those that are too long today can only shrink. Owns
//! `tidy-ratchet.txt`: lines of `file|fn  name  lines`. Must never raise a figure or add a line; a change
//! that needs that edits the file by hand and says why.

use std::collections::BTreeMap;

use super::{
    finding::Finding,
    size::{Kind, Size},
};

type Key<'a> = (Kind, &'a str);

/// One line of the ratchet.
struct Entry<'a> {
    key: Key<'a>,
    lines: usize,
}

pub(super) fn check(ratchet: &str, text: &str, sizes: &[Size]) -> Vec<Finding> {
    let too_long = too_long(sizes);
    let mut findings = Vec::new();
    let mut listed = BTreeMap::new();
    for (line, number) in entry_lines(text) {
        let Some(entry) = parse(line) else {
            findings.push(Finding::new(ratchet, number, "is not `file|fn  name  lines`"));
            continue;
        };
        listed.insert(entry.key, entry.lines);
        let message = match too_long.get(&entry.key) {
            None => "is no longer too long: remove this line".to_owned(),
            Some(size) if size.lines < entry.lines => {
                format!("has shrunk: write `{}`", render(entry.key, size.lines))
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(ratchet, number, format!("{} {message}", entry.key.1)));
    }
    findings.extend(too_long.iter().filter_map(|(key, size)| grown(size, listed.get(key).copied())));
    findings
}

/// The same text with every figure lowered to the current one, without lines that are no longer needed.
pub(super) fn bless(text: &str, sizes: &[Size]) -> String {
    let too_long = too_long(sizes);
    let blessed = text.lines().filter_map(|line| {
        let Some(entry) = parse(line).filter(|_| is_entry(line)) else { return Some(line.to_owned()) };
        let size = too_long.get(&entry.key)?;
        Some(if size.lines < entry.lines { render(entry.key, size.lines) } else { line.to_owned() })
    });
    blessed.map(|line| line + "\n").collect()
}

/// Two functions can have the same name, as in two `impl From`; the longer one counts.
fn too_long(sizes: &[Size]) -> BTreeMap<Key<'_>, &Size> {
    let mut too_long: BTreeMap<Key<'_>, &Size> = BTreeMap::new();
    for size in sizes.iter().filter(|size| size.lines > size.kind.lines_max()) {
        let longest = too_long.entry((size.kind, &size.name)).or_insert(size);
        if size.lines > longest.lines {
            *longest = size;
        }
    }
    too_long
}

fn grown(size: &Size, listed: Option<usize>) -> Option<Finding> {
    let Size { kind, name, path, line, lines } = size;
    let message = match listed {
        Some(listed) if *lines <= listed => return None,
        Some(listed) => format!("has grown from {listed} to {lines} lines: it may only shrink"),
        None => format!("has {lines} lines, more than {}: split it", kind.lines_max()),
    };
    Some(Finding::new(path, *line, format!("{} {name} {message}", kind.word())))
}

fn entry_lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.lines().zip(1..).filter(|(line, _)| is_entry(line))
}

fn is_entry(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

fn parse(line: &str) -> Option<Entry<'_>> {
    let mut words = line.split_whitespace();
    let (kind, name, lines) = (words.next()?, words.next()?, words.next()?);
    let kind = Kind::ALL.into_iter().find(|known| known.word() == kind)?;
    words.next().is_none().then_some(Entry { key: (kind, name), lines: lines.parse().ok()? })
}

fn render((kind, name): Key<'_>, lines: usize) -> String {
    format!("{}  {name}  {lines}", kind.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Only shrinks.\nfile  a.rs  400\nfn  a.rs::Lease::split  60\n";

    fn sizes(file: usize, function: usize) -> Vec<Size> {
        let size =
            |kind, name: &str, lines| Size { kind, name: name.into(), path: "a.rs".into(), line: 7, lines };
        vec![size(Kind::File, "a.rs", file), size(Kind::Fn, "a.rs::Lease::split", function)]
    }

    fn messages(text: &str, sizes: &[Size]) -> Vec<String> {
        check("ratchet", text, sizes).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn short_code_passes_an_empty_ratchet() {
        assert_eq!(messages("", &sizes(300, 40)), [""; 0]);
    }

    #[test]
    fn long_code_that_is_not_listed_is_found() {
        assert_eq!(
            messages("", &sizes(301, 41)),
            [
                "a.rs:7: file a.rs has 301 lines, more than 300: split it",
                "a.rs:7: fn a.rs::Lease::split has 41 lines, more than 40: split it"
            ]
        );
    }

    #[test]
    fn long_code_that_is_listed_passes_until_it_grows() {
        assert_eq!(messages(TEXT, &sizes(400, 60)), [""; 0]);
        assert_eq!(
            messages(TEXT, &sizes(400, 61)),
            ["a.rs:7: fn a.rs::Lease::split has grown from 60 to 61 lines: it may only shrink"]
        );
    }

    #[test]
    fn a_finding_for_shorter_code_shows_the_new_line() {
        assert_eq!(
            messages(TEXT, &sizes(350, 20)),
            [
                "ratchet:2: a.rs has shrunk: write `file  a.rs  350`",
                "ratchet:3: a.rs::Lease::split is no longer too long: remove this line"
            ]
        );
        assert_eq!(messages(TEXT, &[]).len(), 2);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_found() {
        assert_eq!(messages("file a.rs many\n", &[]), ["ratchet:1: is not `file|fn  name  lines`"]);
    }

    #[test]
    fn blessing_only_lowers() {
        assert_eq!(
            bless(TEXT, &sizes(350, 61)),
            "# Only shrinks.\nfile  a.rs  350\nfn  a.rs::Lease::split  60\n"
        );
        assert_eq!(bless(TEXT, &sizes(350, 20)), "# Only shrinks.\nfile  a.rs  350\n");
        assert_eq!(bless("", &sizes(900, 900)), "");
    }

    #[test]
    fn the_longer_of_two_functions_of_one_name_counts() {
        let both: Vec<_> = [sizes(1, 60), sizes(1, 50)].into_iter().flatten().collect();
        assert_eq!(messages("fn a.rs::Lease::split 60", &both), [""; 0]);
    }
}
