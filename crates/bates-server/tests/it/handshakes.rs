//! What client libraries send when they connect, and the answers that they need. The bytes of node-redis 6.3.1, ioredis 6.0.0
//! and redis-py 8.1.0 were recorded; those of the others follow their sources: Lettuce 7, Jedis 7, StackExchange.Redis 3.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use super::claims::encode;
use super::port::{Port, settings};

/// Follows each command, to find the end of its answer.
const END: &str = "$7\r\n~~end~~\r\n";

const HELLO_3: &str = "%7\r\n$6\r\nserver\r\n$5\r\nbates\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
                       $4\r\nrole\r\n$6\r\nmaster\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:";
const OK: &str = "+OK\r\n";
/// The client goes on without it.
const UNKNOWN: &str = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS' of CLIENT\r\n";

/// Sends the commands on one connection; each answer must begin so.
fn converse(port: &Port, commands: &[(&str, &str)]) {
    let mut stream = BufReader::new(port.connect());
    for (command, expected) in commands {
        let answer = ask(&mut stream, command);
        assert!(answer.starts_with(expected), "{command}: {answer:?} does not begin with {expected:?}");
    }
}

fn ask(stream: &mut BufReader<TcpStream>, command: &str) -> String {
    let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    stream.get_mut().write_all(&encode(&[words(command), words("ECHO ~~end~~")])).unwrap();
    let mut answer = String::new();
    while !answer.ends_with(END) {
        assert!(stream.read_line(&mut answer).unwrap() > 0, "{command}: closed after {answer:?}");
    }
    answer.truncate(answer.len() - END.len());
    answer
}

#[test]
fn node_redis_connects() {
    let commands = [
        ("HELLO 3", HELLO_3),
        ("CLIENT SETINFO LIB-VER 6.3.1", OK),
        ("CLIENT SETINFO LIB-NAME node-redis", OK),
        ("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-ip", UNKNOWN),
        ("PING", "+PONG\r\n"),
    ];
    converse(&Port::open(), &commands);
}

#[test]
fn ioredis_connects() {
    let commands = [
        ("hello 3", HELLO_3),
        ("client SETINFO LIB-VER 6.0.0", OK),
        ("client SETINFO LIB-NAME ioredis", OK),
        // It waits until `loading` is 0.
        ("info", "="),
    ];
    let port = Port::open();
    converse(&port, &commands);
    let mut stream = BufReader::new(port.connect());
    assert!(ask(&mut stream, "info").contains("\r\nloading:0\r\n"));
}

#[test]
fn redis_py_connects() {
    let commands = [
        ("HELLO 3", HELLO_3),
        ("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-fqdn", UNKNOWN),
        ("CLIENT SETINFO LIB-NAME redis-py", OK),
        ("CLIENT SETINFO LIB-VER 8.1.0", OK),
        ("PING", "+PONG\r\n"),
    ];
    converse(&Port::open(), &commands);
}

#[test]
fn lettuce_connects() {
    let commands = [
        ("HELLO 3 SETNAME worker", HELLO_3),
        ("CLIENT SETINFO lib-name Lettuce", OK),
        ("CLIENT SETINFO lib-ver 7.0.0.RELEASE/f4dfb40", OK),
        ("CLIENT MAINT_NOTIFICATIONS on moving-endpoint-type internal-ip", UNKNOWN),
        ("CLIENT GETNAME", "$6\r\nworker\r\n"),
        // Asked by its topology of a master and replicas.
        ("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"),
    ];
    converse(&Port::open(), &commands);
    let resp2 =
        [("PING", "+PONG\r\n"), ("CLIENT SETNAME worker", OK), ("CLIENT SETINFO lib-name Lettuce", OK)];
    converse(&Port::open(), &resp2);
}

#[test]
fn jedis_connects() {
    let commands = [
        ("CLIENT SETNAME worker", OK),
        ("CLIENT SETINFO LIB-NAME jedis(;)", OK),
        ("CLIENT SETINFO LIB-VER 7.0.0", OK),
        ("SELECT 0", OK),
    ];
    converse(&Port::open(), &commands);
    converse(&Port::open(), &[&[("HELLO 3", HELLO_3)], &commands[..]].concat());
}

/// With the name that it gives itself on a host with a long name.
fn stackexchange_name() -> String {
    format!("CLIENT SETNAME {}(SE.Redis-v3.0.17.22641)", "h".repeat(63))
}

#[test]
fn stackexchange_redis_connects() {
    let name = stackexchange_name();
    let commands = [
        ("HELLO 2", "*14\r\n$6\r\nserver\r\n$5\r\nbates\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n"),
        (&*name, OK),
        ("CLIENT SETINFO lib-name SE.Redis", OK),
        ("CLIENT SETINFO lib-ver 3.0.17.22641", OK),
        ("CLIENT ID", ":1\r\n"),
        ("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"),
        ("CONFIG GET replica-read-only", "*2\r\n$17\r\nreplica-read-only\r\n$3\r\nyes\r\n"),
        ("CONFIG GET slave-read-only", "*2\r\n$15\r\nslave-read-only\r\n$3\r\nyes\r\n"),
        ("CONFIG GET databases", "*2\r\n$9\r\ndatabases\r\n$1\r\n1\r\n"),
        // It takes these errors for a server without sentinels and without a cluster, as those of Redis.
        ("SENTINEL MASTERS", "-ERR unknown command 'SENTINEL'"),
        ("INFO replication", "$48\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n"),
        ("INFO server", "$"),
        ("CLUSTER NODES", "-ERR This instance has cluster support disabled\r\n"),
        // Its tie breaker; an error counts as none.
        ("GET __Booksleeve_TieBreak", "-ERR bad_key: no series has a key like"),
        ("ECHO 0123456789abcdef", "$16\r\n0123456789abcdef\r\n"),
    ];
    converse(&Port::open(), &commands);
}

#[test]
fn stackexchange_redis_subscribes() {
    let subscribe = "SUBSCRIBE __Booksleeve_MasterChanged";
    let confirmed = "3\r\n$9\r\nsubscribe\r\n$26\r\n__Booksleeve_MasterChanged\r\n:1\r\n";
    let resp2 = [
        (&*stackexchange_name(), OK),
        ("ECHO 0123456789abcdef", "$16\r\n0123456789abcdef\r\n"),
        (subscribe, &*format!("*{confirmed}")),
        ("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
        ("UNSUBSCRIBE other", "*3\r\n$11\r\nunsubscribe\r\n$5\r\nother\r\n:1\r\n"),
        ("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$26\r\n__Booksleeve_MasterChanged\r\n:0\r\n"),
        ("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"),
        ("PING", "+PONG\r\n"),
    ];
    converse(&Port::open(), &resp2);
    let resp3 = [("HELLO 3", HELLO_3), (subscribe, &*format!(">{confirmed}")), ("PING", "+PONG\r\n")];
    converse(&Port::open(), &resp3);
}

#[test]
fn subscriptions_are_bounded_and_refused_in_a_transaction() {
    let port = Port::open();
    let many = format!("SUBSCRIBE{}", " c".repeat(65));
    let long = format!("SUBSCRIBE {}", "c".repeat(257));
    let limit = "-ERR a connection can subscribe to at most 64 channels of 256 bytes\r\n";
    converse(&port, &[(&*many, limit), (&*long, limit)]);
    let refused = "-ERR SUBSCRIBE is not allowed inside MULTI: send it before\r\n";
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    let answer = port.talk(b"MULTI\r\nSUBSCRIBE c\r\nEXEC\r\n");
    assert_eq!(answer, format!("+OK\r\n{refused}{aborted}"));
}

#[test]
fn client_tracking_can_only_be_off() {
    let refused = "-ERR CLIENT TRACKING is not supported: a counter changes with every number\r\n";
    converse(&Port::open(), &[("CLIENT TRACKING OFF", OK), ("CLIENT TRACKING ON", refused)]);
}

#[test]
fn a_client_that_authenticates_first_connects_in_one_batch() {
    let port = Port::open_with(settings(Some("secret")), std::sync::Arc::default());
    let answer = port.talk(b"AUTH secret\r\nHELLO 2\r\nCLIENT SETNAME worker\r\nCLIENT ID\r\nECHO x\r\n");
    assert!(answer.starts_with("+OK\r\n*14\r\n") && answer.ends_with("+OK\r\n:1\r\n$1\r\nx\r\n"), "{answer}");
}
