//! What clients say around the commands that give numbers, over a real connection, beside a real Redis where
//! both should say the same.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use bates_testkit::PrivateRedis;

use super::port::Port;

/// The answer to one line, of which the test knows the length in lines.
fn ask(stream: &mut BufReader<TcpStream>, line: &str, lines: usize) -> String {
    stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    for _ in 0..lines {
        stream.read_line(&mut answer).unwrap();
    }
    answer
}

#[test]
fn the_time_of_day_comes_in_seconds_and_microseconds() {
    assert_eq!(Port::open().talk(b"TIME\r\n"), "*2\r\n$10\r\n1800000000\r\n$6\r\n999999\r\n");
}

#[test]
fn clients_have_ids_names_and_libraries_that_others_see_until_they_leave() {
    let port = Port::open();
    let mut first = BufReader::new(port.connect());
    let mut second = BufReader::new(port.connect());
    let id = |stream: &mut _| ask(stream, "CLIENT ID", 1)[1..].trim_end().parse::<u64>().unwrap();
    let (first_id, second_id) = (id(&mut first), id(&mut second));
    assert_ne!(first_id, second_id);
    assert_eq!(ask(&mut first, "CLIENT GETNAME", 1), "$-1\r\n");
    for line in ["CLIENT SETNAME worker-1", "CLIENT SETINFO LIB-NAME mine", "client setinfo lib-ver 1.2"] {
        assert_eq!(ask(&mut first, line, 1), "+OK\r\n");
    }
    assert_eq!(ask(&mut first, "CLIENT GETNAME", 2), "$8\r\nworker-1\r\n");
    let seen = ask(&mut second, &format!("CLIENT LIST ID {first_id}"), 3);
    let shown = format!("id={first_id} addr={} ", first.get_ref().local_addr().unwrap());
    assert!(seen.contains(&shown), "{seen}");
    assert!(seen.contains(" name=worker-1 ") && seen.contains(" lib-name=mine lib-ver=1.2\n"), "{seen}");
    let own = ask(&mut first, "CLIENT INFO", 3);
    assert!(own.contains(&format!("id={first_id} ")) && !own.contains(&format!("id={second_id} ")), "{own}");
    assert_eq!(ask(&mut first, "QUIT", 1), "+OK\r\n");
    first.read_to_end(&mut Vec::new()).unwrap();
    // Its seat is given up after its socket is closed: asked until then.
    while ask(&mut second, &format!("CLIENT LIST ID {first_id}"), 2) != "$0\r\n\r\n" {}
    assert_eq!(ask(&mut second, "CLIENT LIST TYPE normal", 3).matches("id=").count(), 1);
}

#[test]
fn what_client_cannot_do_is_refused_and_leaves_the_connection_open() {
    let port = Port::open();
    for (line, reason) in [
        ("CLIENT REPLY OFF", "CLIENT REPLY is not supported: every command is answered"),
        ("CLIENT KILL ID 1", "unknown subcommand 'KILL'"),
        ("CLIENT SETNAME \"a b\"", "Client names cannot contain spaces"),
        ("CLIENT SETINFO LIB-NAME \"a b\"", "LIB-NAME is up to 64 visible characters"),
        ("CLIENT SETINFO COLOUR red", "Unrecognized option 'COLOUR'"),
        ("CLIENT NO-EVICT maybe", "ON or OFF"),
        ("CLIENT ID 1", "wrong number of arguments for 'client|id'"),
        ("CLIENT LIST ID x", "Invalid client ID"),
        ("CLIENT LIST NONSENSE", "syntax error"),
        ("CLIENT", "wrong number of arguments for 'client'"),
        ("HELLO 3 SETNAME \"a b\"", "Client names cannot contain spaces"),
        ("COMMAND COUNT x", "unknown subcommand or wrong number of arguments"),
        ("COMMAND GETKEYS INCR a", "unknown subcommand"),
        ("CONFIG SET save x", "only CONFIG GET"),
        ("SELECT 1", "DB index is out of range"),
        ("TIME now", "wrong number of arguments for 'time'"),
    ] {
        let said = port.talk(format!("{line}\r\nPING\r\n").as_bytes());
        let (refusal, rest) = said.split_once("\r\n").unwrap();
        assert!(refusal.starts_with("-ERR ") && refusal.contains(reason), "{line}: {said}");
        assert_eq!(rest, "+PONG\r\n", "{line}");
    }
    let long = format!("CLIENT SETNAME {}\r\n", "x".repeat(65));
    assert!(port.talk(long.as_bytes()).starts_with("-ERR Client names"));
    assert_eq!(port.talk(b"CLIENT NO-EVICT on\r\nCLIENT NO-TOUCH off\r\n"), "+OK\r\n+OK\r\n");
}

#[test]
fn every_command_of_the_table_is_told_with_its_arity_and_keys_as_redis_tells_it() {
    let (port, redis) = (Port::open(), PrivateRedis::start().unwrap());
    let names: Vec<String> = port
        .talk(b"COMMAND LIST\r\n")
        .lines()
        .filter(|l| !l.starts_with(['*', '$']))
        .map(str::to_owned)
        .collect();
    assert_eq!(port.talk(b"COMMAND COUNT\r\n"), format!(":{}\r\n", names.len()));
    assert!(names.len() >= 20, "{names:?}");
    for name in names.iter().filter(|name| !name.starts_with("bates.")) {
        let line = format!("COMMAND INFO {name}\r\n");
        let (ours, theirs) = (told(&port.talk(line.as_bytes())), told(&asked(&redis, &line)));
        assert_eq!(ours[0], theirs[0], "{name}");
        // Redis takes several keys for EXISTS; we look at one.
        if name != "exists" {
            assert_eq!(ours, theirs, "{name}");
        }
    }
    assert_eq!(port.talk(b"COMMAND INFO nonsense\r\n"), "*1\r\n*-1\r\n");
    let all = port.talk(b"COMMAND\r\n");
    assert!(names.iter().all(|name| all.contains(&format!("\r\n{name}\r\n"))), "{all}");
}

/// Name, arity, first key, last key, step.
fn told(info: &str) -> Vec<String> {
    let lines: Vec<&str> = info.split("\r\n").collect();
    let plain = lines.iter().skip(3).filter(|line| !line.starts_with(['*', '+', '$', '~']));
    plain.take(5).map(ToString::to_string).collect()
}

fn asked(redis: &PrivateRedis, line: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
    stream.write_all(format!("{line}QUIT\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_arguments_of_every_command_are_counted_by_the_table() {
    let port = Port::open();
    for (line, name) in [
        ("INCR", "incr"),
        ("INCR counter:a b", "incr"),
        ("INCRBY counter:a", "incrby"),
        ("GET", "get"),
        ("LPOP", "lpop"),
        ("LPOP a 1 2", "lpop"),
        ("ECHO", "echo"),
        ("PING a b", "ping"),
        ("RESET now", "reset"),
    ] {
        let said = port.talk(format!("{line}\r\n").as_bytes());
        assert_eq!(said, format!("-ERR wrong number of arguments for '{name}' command\r\n"), "{line}");
    }
}

#[test]
fn commands_are_documented_by_name() {
    let port = Port::open();
    let said = port.talk(b"HELLO 3\r\nCOMMAND DOCS incr nonsense INCRBY\r\nCOMMAND DOCS\r\n");
    assert!(said.contains("\r\n%2\r\n$4\r\nincr\r\n%2\r\n$7\r\nsummary\r\n"), "{said}");
    assert!(said.contains("\r\n%23\r\n"), "{said}");
}

#[test]
fn info_has_the_sections_that_are_asked_for() {
    let port = Port::open();
    let all = port.talk(b"INFO\r\n");
    for line in [
        "# Server\r\n",
        "redis_version:",
        "connected_clients:1\r\n",
        "loading:0\r\n",
        "role:master\r\n",
        "series:3\r\n",
    ] {
        assert!(all.contains(line), "{line}: {all}");
    }
    let some = port.talk(b"INFO clients REPLICATION\r\n");
    assert!(
        some.contains("# Clients\r\n") && some.contains("role:master") && !some.contains("# Server"),
        "{some}"
    );
    assert_eq!(port.talk(b"INFO nonsense\r\n"), "$0\r\n\r\n");
}

#[test]
fn redis_benchmark_and_monitoring_are_told_what_they_ask_of_the_configuration() {
    let port = Port::open();
    assert_eq!(port.talk(b"CONFIG GET save\r\n"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    assert_eq!(port.talk(b"config get APPENDONLY nonsense\r\n"), "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n");
    assert!(port.talk(b"CONFIG GET *\r\n").starts_with("*6\r\n"));
    assert_eq!(port.talk(b"CONFIG GET nonsense\r\n"), "*0\r\n");
}
