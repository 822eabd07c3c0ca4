//! While the store cannot be written, an audited series issues nothing, not even numbers in memory.

use super::super::documents::Home;
use super::super::running::{Client, Server};
use super::entries;

const NUMBERS_MAX: u64 = 1_000;

#[test]
fn after_a_failed_sync_an_audited_series_issues_nothing_and_its_earlier_answers_are_recorded() {
    let data = tempfile::tempdir().unwrap();
    let audited = [("BATES_SERIES__COUNTER__AUDIT", "true")];
    Server::start(data.path()).stop();
    // The first syncs happen while the store opens.
    let inject = "fsync,fdatasync:error=EIO:when=12+";
    let doomed = Server::start_doomed(data.path(), inject, &audited).unwrap();
    let mut client = Client::connect(doomed.port).unwrap();
    let mut answered = 0;
    let refusal = loop {
        let answer = client.incr_raw("counter:a").unwrap();
        match answer.strip_prefix(':') {
            Some(number) => answered = number.parse().unwrap(),
            None => break answer,
        }
        assert!(answered < NUMBERS_MAX, "each number needs a sync");
    };
    assert!(answered > 0 && answered < 20, "the rest of the range stays in memory: {answered}");
    assert!(refusal.starts_with("-ERR store_poisoned: "), "{refusal}");
    for _ in 0..10 {
        let answer = client.incr_raw("counter:a").unwrap();
        assert!(answer.starts_with("-ERR store_poisoned: "), "{answer}");
    }
    drop(doomed);
    let server = Server::start_with(data.path(), "127.0.0.1:0", &audited);
    let found = entries(server.http, "&series=counter&name=a");
    let recorded: Vec<u64> = found.iter().map(|entry| entry["from"].as_u64().unwrap()).collect();
    assert!((1..=answered).all(|number| recorded.contains(&number)), "{answered}: {recorded:?}");
}

#[test]
fn while_postgres_is_down_an_audited_series_issues_nothing_and_others_continue() {
    let mut home = Home::postgres();
    let series = "  c: { pattern: \"{seq}\", key: c, audit: true }\n  p: { pattern: \"{seq}\", key: p }\n";
    let server = home.start_with(series, &[("BATES_STORE_TIMEOUT_MS", "3000")]);
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!((client.incr("c"), client.incr("p")), (Some(1), Some(1)));
    home.postgres.as_mut().unwrap().kill().unwrap();
    let refusal = client.incr_raw("c").unwrap();
    assert!(
        refusal.starts_with("-ERR store_unavailable: ") && refusal.contains("could not be recorded"),
        "{refusal}"
    );
    assert_eq!(client.incr("p"), Some(2), "a series without an audit is served from memory");
    home.postgres.as_mut().unwrap().restart().unwrap();
    let number = loop {
        if let Some(number) = client.incr("c") {
            break number;
        }
    };
    assert!(number > 2, "{number}: the unrecorded number is burned");
    let found = entries(server.http, "&series=c");
    let recorded: Vec<u64> = found.iter().map(|entry| entry["from"].as_u64().unwrap()).collect();
    assert_eq!((recorded.first(), recorded.last()), (Some(&1), Some(&number)));
}
