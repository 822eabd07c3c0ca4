//! The end of an ID type: each ID is issued once, and then no more.

use std::collections::HashSet;
use std::thread;

use bates_testkit::PrivatePostgres;

use super::{Setting, batch, issue};
use crate::running::{Client, Server};

/// The number of five-digit IDs that pass all rules.
const ALL: usize = 3_723;

const TYPES: &str = "{ farmer: {id_length: 5}, other: {id_length: 10} }";

/// Takes IDs until each server reports that the type is exhausted (`IDG-002`). Returns all IDs, and how often a server
/// had none for the moment (`IDG-001`).
fn drain(servers: &[&Server], clients: usize) -> (Vec<String>, u64) {
    let ports: Vec<u16> = servers.iter().map(|server| server.http).collect();
    let clients = (0..clients).map(|client| {
        let ports = ports.clone();
        thread::spawn(move || {
            let mut open: Vec<Client> = ports.iter().map(|port| Client::connect(*port).unwrap()).collect();
            let (mut ids, mut unavailable, mut at) = (Vec::new(), 0_u64, client);
            while !open.is_empty() {
                at = (at + 1) % open.len();
                match issue(&mut open[at], "farmer") {
                    Ok(id) => ids.push(id),
                    Err(code) if code == "IDG-001" => unavailable += 1,
                    Err(code) => {
                        assert_eq!(code, "IDG-002");
                        open.remove(at);
                    }
                }
            }
            (ids, unavailable)
        })
    });
    let clients: Vec<_> = clients.collect();
    clients.into_iter().map(|client| client.join().unwrap()).fold(
        (vec![], 0),
        |(mut all, total), (ids, unavailable)| {
            all.extend(ids);
            (all, total + unavailable)
        },
    )
}

/// Checks that all IDs came, each once and in no visible order.
fn check(ids: &[String]) {
    let distinct: HashSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "an ID came twice");
    assert_eq!(ids.len(), ALL);
    let ascending = ids.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((ALL * 4 / 10..ALL * 6 / 10).contains(&ascending), "{ascending} of {ALL} ascend");
}

#[test]
fn a_type_of_five_digits_issues_each_id_once_and_is_then_exhausted() {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let mut ids = batch(&server, "farmer", 1_000);
    // A clean stop loses no ID.
    server.stop();
    let server = setting.serve(&[]);
    let (drained, unavailable) = drain(&[&server], 8);
    assert_eq!(unavailable, 0, "no other node holds IDs");
    ids.extend(drained);
    check(&ids);
    server.stop();
    let server = setting.serve(&[]);
    let mut client = Client::connect(server.http).unwrap();
    assert_eq!(issue(&mut client, "farmer"), Err("IDG-002".to_owned()), "also after a restart");
    server.kill();
    let server = setting.serve(&[]);
    let mut client = Client::connect(server.http).unwrap();
    for _ in 0..3 {
        assert_eq!(issue(&mut client, "farmer"), Err("IDG-002".to_owned()), "and after a crash");
    }
    assert!(issue(&mut client, "other").is_ok(), "other types still issue");
    assert_eq!(
        super::ask(&server, "GET", "/health").0,
        200,
        "an exhausted type does not make the server unhealthy"
    );
}

#[test]
fn a_batch_across_the_end_returns_the_remaining_ids() {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let mut ids = batch(&server, "farmer", 3_700);
    ids.extend(batch(&server, "farmer", 1_000));
    check(&ids);
}

#[test]
fn three_nodes_issue_each_id_once_and_agree_on_the_end() {
    let postgres = PrivatePostgres::start().unwrap();
    let setting = Setting::with(TYPES);
    let nodes: Vec<Server> = (0..3).map(|_| setting.node(&postgres).unwrap()).collect();
    let (ids, _) = drain(&nodes.iter().collect::<Vec<_>>(), 6);
    check(&ids);
    for node in &nodes {
        let mut client = Client::connect(node.http).unwrap();
        assert_eq!(issue(&mut client, "farmer"), Err("IDG-002".to_owned()));
    }
    let fresh = setting.node(&postgres).unwrap();
    let mut client = Client::connect(fresh.http).unwrap();
    assert_eq!(issue(&mut client, "farmer"), Err("IDG-002".to_owned()), "also from a node that starts later");
}

#[test]
fn a_node_reports_exhaustion_only_when_no_other_node_holds_ids() {
    let postgres = PrivatePostgres::start().unwrap();
    let setting = Setting::with(TYPES);
    let (holder, other) = (setting.node(&postgres).unwrap(), setting.node(&postgres).unwrap());
    let mut ids = batch(&holder, "farmer", 1);
    let mut client = Client::connect(other.http).unwrap();
    let code = loop {
        match issue(&mut client, "farmer") {
            Ok(id) => ids.push(id),
            Err(code) => break code,
        }
    };
    assert_eq!(code, "IDG-001", "the first node still holds a part of its range");
    assert!(ids.len() < ALL);
    let (rest, _) = drain(&[&holder], 1);
    ids.extend(rest);
    check(&ids);
    // The holder answers its caller just before it tells the store that its range is used up.
    let outcome = loop {
        match issue(&mut client, "farmer") {
            Err(code) if code == "IDG-001" => {}
            outcome => break outcome,
        }
    };
    assert_eq!(outcome, Err("IDG-002".to_owned()));
}
