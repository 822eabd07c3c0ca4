//! The link shortener: it takes keys from memory, repeats none and reports the unused ones.

use std::collections::BTreeSet;
use std::thread;

use tempfile::tempdir;

use super::process::Example;
use crate::http;
use crate::running::Server;

const PEOPLE: usize = 4;
const LINKS: usize = 100;

fn shorten(example: &Example, link: &str) -> (u16, String) {
    let (status, _, answer) = example.ask("POST /", "", link);
    (status, answer.trim_end().to_owned())
}

#[test]
fn every_link_gets_its_own_key_even_while_bates_is_down() {
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
    assert_eq!(keys.len(), PEOPLE * LINKS, "no two links share a key");
    for (at, key, link) in all.iter().step_by(37) {
        let (_, head, _) = examples[*at].ask(&format!("GET /{key}"), "", "");
        assert!(head.contains(&format!("location: {link}\r\n")), "{head}");
    }
    assert_eq!(shorten(&examples[0], "javascript:alert(1)").0, 400);
    let [one, other] = examples;
    let last_output = one.interrupt();
    let unused: u64 = last_output.split(' ').next().unwrap().parse().unwrap();
    let (_, reconciled) = http::ask(bates.http, "POST", "/v1/reconcile?series=short", "");
    assert_eq!(reconciled["missing"], unused, "{last_output}");
    bates.kill();
    let mut served = 0;
    let refused = loop {
        match shorten(&other, "https://example.com") {
            (200, _) => served += 1,
            refused => break refused,
        }
    };
    assert!(served > 0 && refused.0 == 503, "{refused:?} after {served}");
    assert!(refused.1.contains("no number is in memory and the last refill failed"), "{refused:?}");
}
