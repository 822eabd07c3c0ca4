//! Rights, rates and secrets of callers that send `MULTI`: each command is checked when it is executed.

use std::io::Write as _;

use serde_json::json;

use super::super::audit::ask_as;
use super::super::cluster::Cluster;
use super::super::running::{Client, Server};
use super::tokens::{SHARED, add, secret_of};
use super::{ACME, Rig};

fn start(data: &tempfile::TempDir) -> Server {
    Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", SHARED)])
}

/// A client with a token that may take numbers.
fn connect(server: &Server) -> Client {
    let secret = secret_of(add(server.http, SHARED, "mail", &json!({ "may": ["take"] })));
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!(client.send(&["AUTH", "mail", &secret]).unwrap(), "+OK");
    client
}

fn revoke(server: &Server) {
    assert_eq!(ask_as(server.http, SHARED, "DELETE /v1/tokens/mail", "").0, 200);
}

#[test]
fn a_secret_that_was_revoked_before_exec_takes_nothing() {
    let data = tempfile::tempdir().unwrap();
    let server = start(&data);
    let mut client = connect(&server);
    assert_eq!(client.send(&["MULTI"]).unwrap(), "+OK");
    assert_eq!(client.send(&["INCR", "counter:a"]).unwrap(), "+QUEUED");
    revoke(&server);
    assert!(client.send(&["INCR", "counter:a"]).unwrap().starts_with("-NOAUTH"));
    assert!(client.send(&["EXEC"]).unwrap().starts_with("-EXECABORT"));
    assert!(client.send(&["EXEC"]).unwrap().starts_with("-NOAUTH"), "the transaction is over");
    assert_eq!(client.send(&["AUTH", SHARED]).unwrap(), "+OK");
    assert_eq!(client.send(&["INCR", "counter:a"]).unwrap(), ":1");
}

#[test]
fn a_secret_that_is_revoked_during_exec_ends_it_with_an_answer_for_each_command() {
    const COMMANDS: usize = 400;
    let data = tempfile::tempdir().unwrap();
    let server = start(&data);
    let limits = json!({ "lease_min": 1_000_000, "lease_max": 1_000_000 });
    let body = json!({ "pattern": "{seq:60}", "key": "long", "limits": limits }).to_string();
    assert_eq!(ask_as(server.http, SHARED, "PUT /v1/series/long", &body).0, 201);
    let mut client = connect(&server);
    let command = "*3\r\n$4\r\nLPOP\r\n$4\r\nlong\r\n$5\r\n20000\r\n";
    let transaction = format!("MULTI\r\n{}EXEC\r\nPING\r\n", command.repeat(COMMANDS));
    client.stream.get_mut().write_all(transaction.as_bytes()).unwrap();
    while client.line().unwrap() != "*20000" {}
    revoke(&server);
    let mut answers = vec!["*20000".to_owned()];
    // One more than the elements: the answer to PING.
    while answers.len() <= COMMANDS {
        let line = client.line().unwrap();
        if line.starts_with(['*', '-']) {
            answers.push(line);
        }
    }
    let answered = answers.iter().take_while(|answer| *answer == "*20000").count();
    assert!(answered < COMMANDS / 2, "{answered} of {COMMANDS} commands were executed");
    let refused = &answers[answered..];
    assert!(refused[..refused.len() - 1].iter().all(|answer| answer.contains("was revoked")), "{refused:?}");
    assert_eq!(refused.last().unwrap(), "-NOAUTH Authentication required.");
}

#[test]
fn a_command_without_its_right_discards_the_transaction() {
    let rig = Rig::start();
    let mut client = Client::connect(rig.server.port).unwrap();
    assert_eq!(client.send(&["AUTH", super::secret("read")]).unwrap(), "+OK");
    for command in [&["INCR", "acme:count"][..], &["BATES.NEXT", "acme.count"]] {
        assert_eq!(client.send(&["MULTI"]).unwrap(), "+OK");
        assert_eq!(client.send(&["GET", "acme:count"]).unwrap(), "+QUEUED");
        assert!(client.send(command).unwrap().starts_with("-NOPERM forbidden"), "{command:?}");
        assert!(client.send(&["EXEC"]).unwrap().starts_with("-EXECABORT"));
    }
    assert_eq!(client.send(&["AUTH", super::secret(ACME)]).unwrap(), "+OK");
    assert_eq!(client.send(&["MULTI"]).unwrap(), "+OK");
    assert_eq!(client.send(&["INCR", "acme:count"]).unwrap(), "+QUEUED");
    let unseen = client.send(&["LPOP", "other:letter"]).unwrap();
    assert!(unseen.starts_with("-ERR bad_key: no series has a key like"), "as outside: {unseen}");
    assert!(client.send(&["EXEC"]).unwrap().starts_with("-EXECABORT"));
    assert_eq!(client.send(&["INCR", "acme:count"]).unwrap(), ":1", "no number was taken");
}

#[test]
fn each_command_of_a_transaction_counts_and_a_refused_one_creates_no_scope() {
    let cluster = Cluster::start_with(
        "secret: the shared secret\ntokens:\n  small: { secret: the small one, may: [take], quota: 100/day }\n\
         series:\n  ticket: { pattern: \"{seq}\", key: \"ticket:{name}\" }\n",
    );
    let node = cluster.node();
    let mut client = Client::connect(node.port).unwrap();
    client.send(&["AUTH", "the small one"]).unwrap();
    let commands: Vec<String> = (0..150).map(|at| format!("INCR ticket:t-{at}\r\n")).collect();
    let transaction = format!("MULTI\r\n{}EXEC\r\n", commands.concat());
    client.stream.get_mut().write_all(transaction.as_bytes()).unwrap();
    while client.line().unwrap() != "*150" {}
    let answers: Vec<String> = (0..150).map(|_| client.line().unwrap()).collect();
    assert!(answers[..100].iter().all(|answer| answer == ":1"), "{answers:?}");
    assert!(answers[100..].iter().all(|answer| answer.starts_with("-BUSY rate_exceeded")), "{answers:?}");
    assert_eq!(cluster.query("SELECT count(*) FROM bates.cursor WHERE scope LIKE 'name=t-%'"), "100");
}
