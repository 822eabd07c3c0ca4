//! The path of a document, which depends on its number alone, so that a second delivery overwrites the first.
//!
//! Invariant: no two scopes and numbers share a path, and no part of a path is empty, `.`, `..`, hidden or too long. An
//! encoded part has no `~`, which marks a shortened part; a folder has no `.` in its name, so none is named like a file.

use std::fmt::Write as _;

use bates_core::{Delivery, ScopeKey};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

/// File systems allow 255 bytes.
const PART_BYTES_MAX: usize = 200;
/// With a prefix of 200, a series of 64 and a number of 205 bytes, below the 1,024 that a bucket allows.
const SCOPE_BYTES_MAX: usize = 500;
const CUT_BYTES: usize = 120;

const IN_FOLDER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'=').remove(b'@');
const IN_NUMBER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

pub(super) fn folder(delivery: &Delivery) -> String {
    let series = delivery.scope_id.series.as_str();
    match delivery.scope_id.scope.as_str() {
        "" => series.to_owned(),
        _ => format!("{series}/{}", scope(&delivery.scope_id.scope)),
    }
}

pub(super) fn file(delivery: &Delivery) -> String {
    let number = utf8_percent_encode(&delivery.number, IN_NUMBER).to_string();
    let number = if number.starts_with('.') { number.replacen('.', "%2E", 1) } else { number };
    format!("{}.json", shorten(number, &delivery.number))
}

fn scope(key: &ScopeKey) -> String {
    let parts = key.as_str().split(' ');
    let parts = parts.map(|part| shorten(utf8_percent_encode(part, IN_FOLDER).to_string(), part));
    let path = parts.collect::<Vec<_>>().join("/");
    if path.len() > SCOPE_BYTES_MAX { format!("~{}", digest(key.as_str())) } else { path }
}

fn shorten(encoded: String, whole: &str) -> String {
    let shortened = || format!("{}~{}", &encoded[..CUT_BYTES], digest(whole));
    if encoded.len() <= PART_BYTES_MAX { encoded } else { shortened() }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::payload;

    fn path(scope: &str, number: &str) -> String {
        let delivery = Delivery { number: number.into(), ..payload::tests::delivery(scope, "{}") };
        format!("{}/{}", folder(&delivery), file(&delivery))
    }

    #[test]
    fn a_path_reads_like_its_scope_and_number() {
        let long = path("project=PROJ type=9012 @2026", "PROJ-9012-1001");
        assert_eq!(long, "document/project=PROJ/type=9012/@2026/PROJ-9012-1001.json");
        assert_eq!(path("", "A/1 é"), "document/A%2F1%20%C3%A9.json");
    }

    #[test]
    fn paths_are_distinct_and_no_part_is_special_or_too_long() {
        let wide = "x".repeat(300);
        let values = ["..", ".", "a", "A", "a.json", "~", "%2E", "a/b", "a\\b", "a%2Fb", "../..", &wide];
        let wider = values.map(|value| format!("{value}y"));
        let mut seen = HashMap::new();
        for value in values.iter().copied().chain(wider.iter().map(String::as_str)) {
            let many = (0..16).map(|at| format!("p{at}={value}")).collect::<Vec<_>>().join(" ");
            for scope in ["", &format!("a={value}"), &many] {
                for number in values {
                    let path = path(scope, number);
                    assert!(path.len() <= 64 + 1 + 500 + 1 + 205, "{path}");
                    let odd = |part: &str| part.is_empty() || part.starts_with('.') || part.len() > 205;
                    assert!(!path.split('/').any(odd), "{path}");
                    assert!(path.rsplit('/').skip(1).all(|folder| !folder.contains('.')), "{path}");
                    assert!(object_store::path::Path::parse(&path).is_ok_and(|same| same.as_ref() == path));
                    let named = (scope.to_owned(), number);
                    assert_eq!(seen.entry(path).or_insert(named.clone()), &named);
                }
            }
        }
    }
}
