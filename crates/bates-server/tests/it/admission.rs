//! Who is let in: the secret over a real connection, and how little a stranger may do.

use std::io::{Read as _, Write as _};

use super::port::{Port, settings};

const SECRET: &str = "open sesame";
const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";
const WRONGPASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

fn guarded() -> Port {
    Port::open_with(settings(Some(SECRET)), std::sync::Arc::default())
}

#[test]
fn a_stranger_gets_nothing_but_the_way_in_and_out() {
    let port = guarded();
    let table = port_table();
    for name in table.iter().map(String::as_str).chain(["nonsense", "set", "flushall", ""]) {
        let command = format!("*3\r\n${}\r\n{name}\r\n$9\r\ncounter:a\r\n$1\r\n1\r\n", name.len());
        let said = port.talk(command.as_bytes());
        let is_way = ["auth", "hello", "quit", "reset"].contains(&name);
        assert_eq!(said == NOAUTH, !is_way, "{name}: {said}");
    }
    let hello = port.talk(b"HELLO 3\r\nHELLO\r\n");
    assert_eq!(hello.matches("-NOAUTH HELLO must be called").count(), 2, "{hello}");
    assert_eq!(port.talk(b"QUIT\r\nPING\r\n"), "+OK\r\n");
    let known = port.talk(b"AUTH \"open sesame\"\r\nINCR counter:a\r\nEXISTS counter:1\r\n");
    assert_eq!(known, "+OK\r\n:1\r\n:0\r\n", "strangers have taken nothing");
}

/// The names that `COMMAND LIST` tells.
fn port_table() -> Vec<String> {
    let list = Port::open().talk(b"COMMAND LIST\r\n");
    list.lines().filter(|line| !line.starts_with(['*', '$'])).map(str::to_owned).collect()
}

#[test]
fn the_secret_is_shown_in_three_ways_and_reset_forgets_it() {
    let port = guarded();
    for way in ["AUTH \"open sesame\"\r\n", "AUTH default \"open sesame\"\r\n"] {
        let said = port.talk(format!("{way}PING\r\nRESET\r\nPING\r\n").as_bytes());
        assert_eq!(said, format!("+OK\r\n+PONG\r\n+RESET\r\n{NOAUTH}"), "{way}");
    }
    let hello = "HELLO 3 AUTH default \"open sesame\" SETNAME me\r\nCLIENT GETNAME\r\nGET counter:never\r\n";
    let said = port.talk(hello.as_bytes());
    assert!(said.starts_with("%7\r\n") && said.ends_with("$2\r\nme\r\n_\r\n"), "{said}");
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
        let said = port.talk(format!("{wrong}\r\nPING\r\n").as_bytes());
        assert_eq!(said, format!("{WRONGPASS}{NOAUTH}"), "{wrong}");
    }
    for odd in ["HELLO 3 AUTH default", "HELLO 3 AUTH", "HELLO 3 NONSENSE", "AUTH", "AUTH a b c"] {
        let said = port.talk(format!("{odd}\r\nPING\r\n").as_bytes());
        assert!(said.starts_with("-ERR ") && said.ends_with(NOAUTH), "{odd}: {said}");
    }
    let kept = port.talk(b"AUTH \"open sesame\"\r\nAUTH wrong\r\nPING\r\n");
    assert_eq!(kept, format!("+OK\r\n{WRONGPASS}+PONG\r\n"), "who was let in stays in");
}

#[test]
fn ten_wrong_secrets_close_the_connection() {
    let port = guarded();
    let guesses =
        "AUTH wrong\r\n".repeat(9) + "RESET\r\nHELLO 2 AUTH default wrong\r\nAUTH \"open sesame\"\r\n";
    let said = port.talk(guesses.as_bytes());
    assert_eq!(said, WRONGPASS.repeat(9) + "+RESET\r\n" + WRONGPASS, "the right one comes too late");
}

#[test]
fn a_stranger_has_tight_limits_which_the_secret_lifts_and_reset_brings_back() {
    let port = guarded();
    let too_many = "*11\r\n";
    let too_long = "*2\r\n$4\r\nAUTH\r\n$16385\r\n";
    let refused = |bytes: &str| port.talk(format!("{bytes}PING\r\n").as_bytes());
    assert!(refused(too_many).starts_with("-ERR Protocol error: unauthenticated multibulk length"));
    assert!(refused(too_long).starts_with("-ERR Protocol error: unauthenticated bulk length"));
    let long = format!("*2\r\n$4\r\nECHO\r\n$20000\r\n{}\r\n", "x".repeat(20_000));
    let lifted = port.talk(format!("AUTH \"open sesame\"\r\n{long}RESET\r\n{long}").as_bytes());
    assert_eq!(lifted.matches('x').count(), 20_000, "once, before RESET");
    assert!(
        lifted.contains("+RESET\r\n-ERR Protocol error: unauthenticated bulk length"),
        "{}",
        lifted.len()
    );
}

#[test]
fn a_stranger_who_is_silent_is_cut_off_and_a_client_that_is_known_is_not() {
    let command_timeout = std::time::Duration::from_millis(50);
    let settings = bates_server::resp::Settings { command_timeout, ..settings(Some(SECRET)) };
    let port = Port::open_with(settings, std::sync::Arc::default());
    let mut known = port.connect();
    known.write_all(b"AUTH \"open sesame\"\r\n").unwrap();
    known.read_exact(&mut [0; 5]).unwrap();
    // Each waits for the end of its connection, which only the server makes.
    for first_words in [&b""[..], b"PING\r\n"] {
        let mut stranger = port.connect();
        stranger.write_all(first_words).unwrap();
        let mut said = String::new();
        stranger.read_to_string(&mut said).unwrap();
        assert_eq!(said, if first_words.is_empty() { "" } else { NOAUTH });
    }
    known.write_all(b"PING\r\n").unwrap();
    known.read_exact(&mut [0; 7]).unwrap();
}

#[test]
fn a_server_without_a_secret_says_so_to_whoever_shows_one() {
    let port = Port::open();
    for way in ["AUTH x", "AUTH default x", "HELLO 3 AUTH default x"] {
        let said = port.talk(format!("{way}\r\nPING\r\n").as_bytes());
        assert!(said.starts_with("-ERR AUTH called without any password configured"), "{said}");
        assert!(said.ends_with("\r\n+PONG\r\n"), "{said}");
    }
}

#[test]
fn the_secret_is_in_no_answer() {
    let port = guarded();
    let mut stream = port.connect();
    stream
        .write_all(b"HELLO 3 AUTH default \"open sesame\"\r\nCLIENT LIST\r\nINFO\r\nCONFIG GET *\r\nQUIT\r\n")
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.contains("bates_version") && !said.contains("sesame"), "{said}");
}
