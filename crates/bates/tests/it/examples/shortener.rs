//! The link shortener: keys out of its own memory, none twice, and none lost without a word.

use std::collections::BTreeSet;
use std::thread;

use tempfile::tempdir;

use super::process::Example;
use crate::http;
use crate::running::Server;

const PEOPLE: usize = 4;
const LINKS: usize = 100;

fn shorten(example: &Example, link: &str) -> (u16, String) {
    let (status, _, said) = example.ask("POST /", "", link);
    (status, said.trim_end().to_owned())
}

#[test]
fn links_get_keys_of_their_own_also_while_bates_is_away() {
    let data = tempdir().unwrap();
    let bates = Server::start(data.path());
    let url = format!("http://127.0.0.1:{}", bates.http);
    let examples = [Example::start("shortener", [&url]), Example::start("shortener", [&url])];
    let all: Vec<(usize, String, String)> = thread::scope(|threads| {
        let people: Vec<_> = (0..PEOPLE)
            .map(|person| {
                let examples = &examples;
                threads.spawn(move || {
                    let each = (0..LINKS).map(|nth| {
                        let link = format!("https://example.com/{person}/{nth}");
                        let (status, key) = shorten(&examples[person % 2], &link);
                        assert_eq!((status, key.len()), (200, 6), "{key}");
                        (person % 2, key, link)
                    });
                    each.collect::<Vec<_>>()
                })
            })
            .collect();
        people.into_iter().flat_map(|person| person.join().unwrap()).collect()
    });
    let keys: BTreeSet<&str> = all.iter().map(|(_, key, _)| key.as_str()).collect();
    assert_eq!(keys.len(), PEOPLE * LINKS, "no two links have one key");
    for (at, key, link) in all.iter().step_by(37) {
        let (_, head, _) = examples[*at].ask(&format!("GET /{key}"), "", "");
        assert!(head.contains(&format!("location: {link}\r\n")), "{head}");
    }
    assert_eq!(shorten(&examples[0], "javascript:alert(1)").0, 400);
    let [one, other] = examples;
    let said = one.interrupt();
    let unused: u64 = said.split(' ').next().unwrap().parse().unwrap();
    let (_, reconciled) = http::ask(bates.http, "POST", "/v1/reconcile?series=short", "");
    assert_eq!(reconciled["missing"], unused, "{said}");
    bates.kill();
    let mut lasted = 0;
    let refused = loop {
        match shorten(&other, "https://example.com") {
            (200, _) => lasted += 1,
            refused => break refused,
        }
    };
    assert!(lasted > 0 && refused.0 == 503, "{refused:?} after {lasted}");
    assert!(refused.1.contains("no number is in memory and the last refill failed"), "{refused:?}");
}
