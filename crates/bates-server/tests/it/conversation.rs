//! Commands that clients send besides those that issue numbers, over a real connection, and compared with a
//! real Redis.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use bates_testkit::PrivateRedis;

use super::port::Port;

/// Sends one line, and reads an answer of that many lines.
fn send(stream: &mut BufReader<TcpStream>, line: &str, lines: usize) -> String {
    stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    for _ in 0..lines {
        stream.read_line(&mut answer).unwrap();
    }
    answer
}

#[test]
fn time_answers_in_seconds_and_microseconds() {
    assert_eq!(Port::open().talk(b"TIME\r\n"), "*2\r\n$10\r\n1800000000\r\n$6\r\n999999\r\n");
}

#[test]
fn client_list_shows_ids_names_and_libraries_until_a_client_leaves() {
    let port = Port::open();
    let mut first = BufReader::new(port.connect());
    let mut second = BufReader::new(port.connect());
    let id = |stream: &mut _| send(stream, "CLIENT ID", 1)[1..].trim_end().parse::<u64>().unwrap();
    let (first_id, second_id) = (id(&mut first), id(&mut second));
    assert_ne!(first_id, second_id);
    assert_eq!(send(&mut first, "CLIENT GETNAME", 1), "$-1\r\n");
    for line in ["CLIENT SETNAME worker-1", "CLIENT SETINFO LIB-NAME mine", "client setinfo lib-ver 1.2"] {
        assert_eq!(send(&mut first, line, 1), "+OK\r\n");
    }
    assert_eq!(send(&mut first, "CLIENT GETNAME", 2), "$8\r\nworker-1\r\n");
    let seen = send(&mut second, &format!("CLIENT LIST ID {first_id}"), 3);
    let shown = format!("id={first_id} addr={} ", first.get_ref().local_addr().unwrap());
    assert!(seen.contains(&shown), "{seen}");
    assert!(seen.contains(" name=worker-1 ") && seen.contains(" lib-name=mine lib-ver=1.2\n"), "{seen}");
    let own = send(&mut first, "CLIENT INFO", 3);
    assert!(own.contains(&format!("id={first_id} ")) && !own.contains(&format!("id={second_id} ")), "{own}");
    assert_eq!(send(&mut first, "QUIT", 1), "+OK\r\n");
    first.read_to_end(&mut Vec::new()).unwrap();
    // The server removes the client some time after its socket is closed.
    while send(&mut second, &format!("CLIENT LIST ID {first_id}"), 2) != "$0\r\n\r\n" {}
    assert_eq!(send(&mut second, "CLIENT LIST TYPE normal", 3).matches("id=").count(), 1);
}

#[test]
fn unsupported_or_invalid_commands_are_refused_and_the_connection_stays_open() {
    let port = Port::open();
    for (line, reason) in [
        ("CLIENT REPLY OFF", "CLIENT REPLY is not supported: every command is answered"),
        ("CLIENT KILL ID 1", "unknown subcommand 'KILL'"),
        ("CLIENT SETNAME \"a b\"", "Client names cannot contain spaces"),
        ("CLIENT SETINFO LIB-NAME \"a b\"", "LIB-NAME is up to 128 visible characters"),
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
        let answer = port.talk(format!("{line}\r\nPING\r\n").as_bytes());
        let (refusal, rest) = answer.split_once("\r\n").unwrap();
        assert!(refusal.starts_with("-ERR ") && refusal.contains(reason), "{line}: {answer}");
        assert_eq!(rest, "+PONG\r\n", "{line}");
    }
    let long = format!("CLIENT SETNAME {}\r\n", "x".repeat(129));
    assert!(port.talk(long.as_bytes()).starts_with("-ERR Client names"));
    assert_eq!(port.talk(b"CLIENT NO-EVICT on\r\nCLIENT NO-TOUCH off\r\n"), "+OK\r\n+OK\r\n");
}

#[test]
fn command_info_has_the_arity_and_keys_that_redis_has() {
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
        let (ours, theirs) =
            (command_info(&port.talk(line.as_bytes())), command_info(&ask_redis(&redis, &line)));
        assert_eq!(ours[0], theirs[0], "{name}");
        // Redis accepts several keys for EXISTS, Bates only one. WATCH is refused, whatever its keys are.
        if !["exists", "watch"].contains(&name.as_str()) {
            assert_eq!(ours, theirs, "{name}");
        }
    }
    assert_eq!(port.talk(b"COMMAND INFO nonsense\r\n"), "*1\r\n*-1\r\n");
    let all = port.talk(b"COMMAND\r\n");
    assert!(names.iter().all(|name| all.contains(&format!("\r\n{name}\r\n"))), "{all}");
}

/// Name, arity, first key, last key, step.
fn command_info(info: &str) -> Vec<String> {
    let lines: Vec<&str> = info.split("\r\n").collect();
    let plain = lines.iter().skip(3).filter(|line| !line.starts_with(['*', '+', '$', '~']));
    plain.take(5).map(ToString::to_string).collect()
}

fn ask_redis(redis: &PrivateRedis, line: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
    stream.write_all(format!("{line}QUIT\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_wrong_number_of_arguments_is_refused_with_the_command_name() {
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
        let answer = port.talk(format!("{line}\r\n").as_bytes());
        assert_eq!(answer, format!("-ERR wrong number of arguments for '{name}' command\r\n"), "{line}");
    }
}

#[test]
fn commands_are_documented_by_name() {
    let port = Port::open();
    let answer = port.talk(b"HELLO 3\r\nCOMMAND DOCS incr nonsense INCRBY\r\nCOMMAND DOCS\r\n");
    assert!(answer.contains("\r\n%2\r\n$4\r\nincr\r\n%2\r\n$7\r\nsummary\r\n"), "{answer}");
    assert!(answer.contains("\r\n%33\r\n"), "{answer}");
}

#[test]
fn info_has_the_requested_sections() {
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
fn config_get_answers_the_settings_that_redis_benchmark_and_monitors_read() {
    let port = Port::open();
    assert_eq!(port.talk(b"CONFIG GET save\r\n"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    assert_eq!(port.talk(b"config get APPENDONLY nonsense\r\n"), "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n");
    assert!(port.talk(b"CONFIG GET *\r\n").starts_with("*12\r\n"));
    assert_eq!(port.talk(b"CONFIG GET nonsense\r\n"), "*0\r\n");
}

#[test]
fn mget_reads_each_counter_as_get_does_and_answers_nil_where_get_answers_an_error() {
    let (port, redis) = (Port::open(), PrivateRedis::start().unwrap());
    let lines = "MGET counter:a counter:b\r\nINCR counter:a\r\nINCRBY counter:b 7\r\n\
                 MGET counter:b counter:none counter:a counter:b\r\nMGET\r\n\
                 MULTI\r\nINCR counter:a\r\nMGET counter:a counter:none\r\nEXEC\r\nQUIT\r\n";
    assert_eq!(port.talk(lines.as_bytes()), ask_redis(&redis, lines));
    // A series of texts, a key that no series has, a scope that is invalid, and bytes that are not UTF-8.
    let nil = b"MGET text no:series \"counter:\\n\" \"\\xff\" counter:a tiny\r\n";
    let answer = port.talk(nil);
    let expected = "*6\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$1\r\n2\r\n$-1\r\n";
    assert!(answer.starts_with(expected), "{answer}");
    assert_eq!(port.talk(b"EXISTS counter:none\r\n"), ":0\r\n", "a look creates no scope");
    assert!(port.talk(b"HELLO 3\r\nMGET x\r\n").ends_with("*1\r\n_\r\n"));
}

#[test]
fn mget_reads_at_most_a_thousand_keys() {
    let (port, key) = (Port::open(), " counter:a");
    let answer = port.talk(format!("MGET{}\r\n", key.repeat(1_000)).as_bytes());
    assert_eq!(answer, format!("*1000\r\n{}", "$-1\r\n".repeat(1_000)));
    let answer = port.talk(format!("MGET{}\r\nPING\r\n", key.repeat(1_001)).as_bytes());
    assert_eq!(answer, "-ERR MGET has 1001 keys; the maximum is 1000\r\n+PONG\r\n");
}
