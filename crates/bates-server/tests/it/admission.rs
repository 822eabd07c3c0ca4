//! Authentication over a real connection, and the little that an unauthenticated client may do.

use std::io::{Read as _, Write as _};

use super::port::{Port, settings};

const SECRET: &str = "open sesame";
const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";
const WRONGPASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

fn guarded() -> Port {
    Port::open_with(settings(Some(SECRET)), std::sync::Arc::default())
}

#[test]
fn an_unauthenticated_client_may_only_authenticate_reset_or_quit() {
    let port = guarded();
    let names = command_names();
    for name in names.iter().map(String::as_str).chain(["nonsense", "set", "flushall", ""]) {
        let command = format!("*3\r\n${}\r\n{name}\r\n$9\r\ncounter:a\r\n$1\r\n1\r\n", name.len());
        let answer = port.talk(command.as_bytes());
        let is_allowed = ["auth", "hello", "quit", "reset"].contains(&name);
        assert_eq!(answer == NOAUTH, !is_allowed, "{name}: {answer}");
    }
    let hello = port.talk(b"HELLO 3\r\nHELLO\r\n");
    assert_eq!(hello.matches("-NOAUTH HELLO must be called").count(), 2, "{hello}");
    assert_eq!(port.talk(b"QUIT\r\nPING\r\n"), "+OK\r\n");
    let authenticated = port.talk(b"AUTH \"open sesame\"\r\nINCR counter:a\r\nEXISTS counter:1\r\n");
    assert_eq!(authenticated, "+OK\r\n:1\r\n:0\r\n", "unauthenticated clients have taken no number");
}

/// The names in the answer to `COMMAND LIST`.
fn command_names() -> Vec<String> {
    let list = Port::open().talk(b"COMMAND LIST\r\n");
    list.lines().filter(|line| !line.starts_with(['*', '$'])).map(str::to_owned).collect()
}

#[test]
fn a_client_can_authenticate_in_three_ways_and_reset_ends_it() {
    let port = guarded();
    for way in ["AUTH \"open sesame\"\r\n", "AUTH default \"open sesame\"\r\n"] {
        let answer = port.talk(format!("{way}PING\r\nRESET\r\nPING\r\n").as_bytes());
        assert_eq!(answer, format!("+OK\r\n+PONG\r\n+RESET\r\n{NOAUTH}"), "{way}");
    }
    let hello = "HELLO 3 AUTH default \"open sesame\" SETNAME me\r\nCLIENT GETNAME\r\nGET counter:never\r\n";
    let answer = port.talk(hello.as_bytes());
    assert!(answer.starts_with("%7\r\n") && answer.ends_with("$2\r\nme\r\n_\r\n"), "{answer}");
}

#[test]
fn a_wrong_secret_or_user_is_refused_and_changes_nothing() {
    let port = guarded();
    for wrong in [
        "AUTH wrong",
        "AUTH \"\"",
        "AUTH default wrong",
        "AUTH root \"open sesame\"",
        "AUTH DEFAULT \"open sesame\"",
        "HELLO 3 AUTH default wrong",
        "HELLO 3 AUTH root \"open sesame\"",
    ] {
        let answer = port.talk(format!("{wrong}\r\nPING\r\n").as_bytes());
        assert_eq!(answer, format!("{WRONGPASS}{NOAUTH}"), "{wrong}");
    }
    for odd in ["HELLO 3 AUTH default", "HELLO 3 AUTH", "HELLO 3 NONSENSE", "AUTH", "AUTH a b c"] {
        let answer = port.talk(format!("{odd}\r\nPING\r\n").as_bytes());
        assert!(answer.starts_with("-ERR ") && answer.ends_with(NOAUTH), "{odd}: {answer}");
    }
    let answer = port.talk(b"AUTH \"open sesame\"\r\nAUTH wrong\r\nPING\r\n");
    assert_eq!(answer, format!("+OK\r\n{WRONGPASS}+PONG\r\n"), "the client stays authenticated");
}

#[test]
fn ten_wrong_secrets_close_the_connection() {
    let port = guarded();
    let guesses =
        "AUTH wrong\r\n".repeat(9) + "RESET\r\nHELLO 2 AUTH default wrong\r\nAUTH \"open sesame\"\r\n";
    let answer = port.talk(guesses.as_bytes());
    assert_eq!(answer, WRONGPASS.repeat(9) + "+RESET\r\n" + WRONGPASS, "the right secret comes too late");
}

#[test]
fn the_secret_lifts_the_tight_limits_and_reset_restores_them() {
    let port = guarded();
    let too_many = "*11\r\n";
    let too_long = "*2\r\n$4\r\nAUTH\r\n$16385\r\n";
    let refused = |bytes: &str| port.talk(format!("{bytes}PING\r\n").as_bytes());
    assert!(refused(too_many).starts_with("-ERR Protocol error: unauthenticated multibulk length"));
    assert!(refused(too_long).starts_with("-ERR Protocol error: unauthenticated bulk length"));
    let long = format!("*2\r\n$4\r\nECHO\r\n$20000\r\n{}\r\n", "x".repeat(20_000));
    let lifted = port.talk(format!("AUTH \"open sesame\"\r\n{long}RESET\r\n{long}").as_bytes());
    assert_eq!(lifted.matches('x').count(), 20_000, "only the argument before RESET is accepted");
    assert!(
        lifted.contains("+RESET\r\n-ERR Protocol error: unauthenticated bulk length"),
        "{}",
        lifted.len()
    );
}

#[test]
fn a_silent_client_is_disconnected_unless_it_is_authenticated() {
    let command_timeout = std::time::Duration::from_millis(50);
    let settings = bates_server::resp::Settings { command_timeout, ..settings(Some(SECRET)) };
    let port = Port::open_with(settings, std::sync::Arc::default());
    let mut authenticated = port.connect();
    authenticated.write_all(b"AUTH \"open sesame\"\r\n").unwrap();
    authenticated.read_exact(&mut [0; 5]).unwrap();
    // Each reads until the server closes the connection.
    for request in [&b""[..], b"PING\r\n"] {
        let mut unauthenticated = port.connect();
        unauthenticated.write_all(request).unwrap();
        let mut answer = String::new();
        unauthenticated.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, if request.is_empty() { "" } else { NOAUTH });
    }
    authenticated.write_all(b"PING\r\n").unwrap();
    authenticated.read_exact(&mut [0; 7]).unwrap();
}

#[test]
fn auth_is_refused_by_a_server_without_a_secret() {
    let port = Port::open();
    for way in ["AUTH x", "AUTH default x", "HELLO 3 AUTH default x"] {
        let answer = port.talk(format!("{way}\r\nPING\r\n").as_bytes());
        assert!(answer.starts_with("-ERR AUTH called without any password configured"), "{answer}");
        assert!(answer.ends_with("\r\n+PONG\r\n"), "{answer}");
    }
}

#[test]
fn no_answer_contains_the_secret() {
    let port = guarded();
    let mut stream = port.connect();
    stream
        .write_all(b"HELLO 3 AUTH default \"open sesame\"\r\nCLIENT LIST\r\nINFO\r\nCONFIG GET *\r\nQUIT\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("bates_version") && !answer.contains("sesame"), "{answer}");
}
