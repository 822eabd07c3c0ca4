//! Fault 12 on PostgreSQL: its data folder is copied, numbers are issued, and the copy is put back.

use std::collections::HashSet;
use std::process::Command;

use bates_testkit::PrivatePostgres;

use super::running::Server;

const KEYS: [&str; 2] = ["short", "counter:a"];

fn take(node: &Server, key: &str) -> String {
    if key == "short" { node.redis_cli(&["LPOP", key]) } else { node.redis_cli(&["INCR", key]) }
}

/// Takes `count` numbers of each key, and fails if one was issued before.
fn issue(node: &Server, count: usize, issued: &mut HashSet<String>) {
    for key in KEYS {
        for _ in 0..count {
            let number = take(node, key);
            assert!(issued.insert(format!("{key} {number}")), "{key} gave {number} twice");
        }
    }
}

fn floor(url: &str, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    let output = command.env("BATES_STORE", url).arg("floor").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Raises the cursors above all numbers that nodes issued or may hold, as the documentation says.
fn raise_cursors(url: &str) {
    floor(url, &["short", "200000"]);
    floor(url, &["counter", "name=a", "1000"]);
}

#[test]
fn running_nodes_stop_when_an_old_copy_is_restored_until_cursors_are_raised() {
    let mut postgres = PrivatePostgres::start().unwrap();
    let (one, two) = (Server::node(&postgres.url()), Server::node(&postgres.url()));
    let mut issued = HashSet::new();
    issue(&one, 40, &mut issued);
    issue(&two, 5, &mut issued);
    let copy = postgres.copy().unwrap();
    issue(&one, 300, &mut issued);
    postgres.put_back(&copy).unwrap();
    // The node issues new numbers from memory for a moment, then notices that its store went back.
    loop {
        let answer = take(&one, "short");
        if answer.contains("store_poisoned") {
            break;
        }
        assert!(
            answer.contains("store_unavailable") || issued.insert(format!("short {answer}")),
            "{answer} came twice"
        );
    }
    assert!(take(&one, "counter:a").contains("store_poisoned"));
    while !take(&two, "short").contains("store_poisoned") {}
    let refused = Server::try_node(&postgres.url(), &[], &[]).err().unwrap();
    assert!(refused.contains("bates floor"), "a new node is refused too: {refused}");
    raise_cursors(&postgres.url());
    floor(&postgres.url(), &["--accept-timeline"]);
    let three = Server::node(&postgres.url());
    while take(&one, "short").contains("store_poisoned") || take(&two, "short").contains("store_poisoned") {}
    for node in [&one, &two, &three] {
        issue(node, 50, &mut issued);
    }
}

#[test]
fn a_copy_restored_while_no_node_runs_repeats_no_number_once_cursors_are_raised() {
    let mut postgres = PrivatePostgres::start().unwrap();
    let mut issued = HashSet::new();
    let node = Server::node(&postgres.url());
    issue(&node, 40, &mut issued);
    let copy = postgres.copy().unwrap();
    issue(&node, 300, &mut issued);
    node.kill();
    postgres.put_back(&copy).unwrap();
    raise_cursors(&postgres.url());
    // Opening the copy may take long.
    let long_timeout = [("BATES_STORE_TIMEOUT_MS", "60000")];
    issue(&Server::try_node(&postgres.url(), &[], &long_timeout).unwrap(), 300, &mut issued);
}
