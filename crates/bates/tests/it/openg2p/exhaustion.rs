//! The end of an ID type: each identifier once, and then none for ever.

use std::collections::HashSet;
use std::thread;

use bates_testkit::PrivatePostgres;

use super::{Setting, batch, issue};
use crate::running::{Client, Server};

/// How many identifiers of five digits keep all rules.
const ALL: usize = 3_723;

const TYPES: &str = "{ farmer: {id_length: 5}, other: {id_length: 10} }";

/// Takes until each server says that there are none for ever; answers with all IDs and how often there were none just now.
fn drain(servers: &[&Server], clients: usize) -> (Vec<String>, u64) {
    let ports: Vec<u16> = servers.iter().map(|server| server.http).collect();
    let clients = (0..clients).map(|client| {
        let ports = ports.clone();
        thread::spawn(move || {
            let mut open: Vec<Client> = ports.iter().map(|port| Client::connect(*port).unwrap()).collect();
            let (mut ids, mut none_now, mut at) = (Vec::new(), 0_u64, client);
            while !open.is_empty() {
                at = (at + 1) % open.len();
                match issue(&mut open[at], "farmer") {
                    Ok(id) => ids.push(id),
                    Err(code) if code == "IDG-001" => none_now += 1,
                    Err(code) => {
                        assert_eq!(code, "IDG-002");
                        open.remove(at);
                    }
                }
            }
            (ids, none_now)
        })
    });
    let clients: Vec<_> = clients.collect();
    clients.into_iter().map(|client| client.join().unwrap()).fold(
        (vec![], 0),
        |(mut all, none), (ids, none_now)| {
            all.extend(ids);
            (all, none + none_now)
        },
    )
}

/// Each once, all of them, and in no order that somebody could see.
fn check(ids: &[String]) {
    let different: HashSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "one came twice");
    assert_eq!(ids.len(), ALL);
    let ascending = ids.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((ALL * 4 / 10..ALL * 6 / 10).contains(&ascending), "{ascending} of {ALL} ascend");
}

#[test]
fn a_type_of_five_digits_issues_each_identifier_once_and_then_none_for_ever() {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let mut ids = batch(&server, "farmer", 1_000);
    // A clean stop loses none.
    server.stop();
    let server = setting.serve(&[]);
    let (drained, none_now) = drain(&[&server], 8);
    assert_eq!(none_now, 0, "nobody else holds any");
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
        assert_eq!(issue(&mut client, "farmer"), Err("IDG-002".to_owned()), "and a crash");
    }
    assert!(issue(&mut client, "other").is_ok(), "other types go on");
    assert_eq!(
        super::ask(&server, "GET", "/health").0,
        200,
        "an exhausted type is no reason to be unhealthy"
    );
}

#[test]
fn a_batch_across_the_end_gives_what_is_left() {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let mut ids = batch(&server, "farmer", 3_700);
    ids.extend(batch(&server, "farmer", 1_000));
    check(&ids);
}

#[test]
fn three_nodes_issue_each_identifier_once_and_agree_on_the_end() {
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
    assert_eq!(issue(&mut client, "farmer"), Err("IDG-002".to_owned()), "also from a node that comes later");
}

#[test]
fn whoever_may_still_hold_some_keeps_the_others_from_saying_for_ever() {
    let postgres = PrivatePostgres::start().unwrap();
    let setting = Setting::with(TYPES);
    let (holder, other) = (setting.node(&postgres).unwrap(), setting.node(&postgres).unwrap());
    let mut ids = batch(&holder, "farmer", 1);
    let mut client = Client::connect(other.http).unwrap();
    let told = loop {
        match issue(&mut client, "farmer") {
            Ok(id) => ids.push(id),
            Err(told) => break told,
        }
    };
    assert_eq!(told, "IDG-001", "the first node has some of its first lease");
    assert!(ids.len() < ALL);
    let (rest, _) = drain(&[&holder], 1);
    ids.extend(rest);
    check(&ids);
    // The holder tells the store that it has none any more just after it told its caller.
    let told = loop {
        match issue(&mut client, "farmer") {
            Err(told) if told == "IDG-001" => {}
            told => break told,
        }
    };
    assert_eq!(told, Err("IDG-002".to_owned()));
}
