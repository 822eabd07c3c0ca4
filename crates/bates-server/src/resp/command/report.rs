//! `INFO` and `CONFIG GET`: what monitoring and tools ask of a server.

use std::fmt::Write as _;

use bates_core::{Machine, Store};

use super::super::session::Session;
use super::{Command, Reply};

/// The Redis whose commands ours are like: tools choose by it how they ask.
const REDIS_VERSION: &str = "7.0.0";

/// What `redis-benchmark` and monitoring ask for. Every answer is on disk before it is given, as with
/// `appendonly`.
const CONFIGURATION: [(&str, &str); 3] = [("save", ""), ("appendonly", "yes"), ("databases", "1")];

/// `CONFIG GET name …`; names may be patterns with a star at their end.
pub(super) fn config(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    if !command.arg(1).is_some_and(|what| what.eq_ignore_ascii_case(b"GET")) || command.arg_count() < 3 {
        return reply.error("ERR", "only CONFIG GET <name> is known: a server is configured when it starts");
    }
    let is_asked = |name: &str| {
        command.args().skip(2).any(|asked| match asked.strip_suffix(b"*") {
            Some(start) => {
                name.len() >= start.len() && name.as_bytes()[..start.len()].eq_ignore_ascii_case(start)
            }
            None => asked.eq_ignore_ascii_case(name.as_bytes()),
        })
    };
    let found: Vec<_> = CONFIGURATION.iter().filter(|(name, _)| is_asked(name)).collect();
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

/// `INFO [section …]`; without one, all of them. A section that nobody knows is empty.
pub(super) fn info<S: Store>(
    command: Command<'_>,
    session: &Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) {
    let is_asked = |section: &str| {
        command.arg_count() == 1
            || command.args().skip(1).any(|asked| {
                [section, "all", "default", "everything"]
                    .iter()
                    .any(|name| asked.eq_ignore_ascii_case(name.as_bytes()))
            })
    };
    let mut text = String::new();
    for (section, lines) in sections(session, machine) {
        if is_asked(section) {
            let between = if text.is_empty() { "" } else { "\r\n" };
            write!(text, "{between}# {section}\r\n").expect("a String takes all that is written to it");
            for (name, value) in lines {
                write!(text, "{name}:{value}\r\n").expect("a String takes all that is written to it");
            }
        }
    }
    Reply::new(output, session.protocol).verbatim(&text);
}

type Section = (&'static str, Vec<(&'static str, String)>);

fn sections<S: Store>(session: &Session, machine: &Machine<S>) -> [Section; 5] {
    let front = &session.front;
    let server = vec![
        ("server_name", "bates".to_owned()),
        ("bates_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("redis_version", REDIS_VERSION.to_owned()),
        ("redis_mode", "standalone".to_owned()),
        ("process_id", std::process::id().to_string()),
        ("uptime_in_seconds", front.opened.elapsed().as_secs().to_string()),
    ];
    [
        ("Server", server),
        ("Clients", vec![("connected_clients", front.clients.count().to_string())]),
        // Clients wait with their first command while a Redis loads.
        ("Persistence", vec![("loading", "0".to_owned()), ("aof_enabled", "1".to_owned())]),
        ("Replication", vec![("role", "master".to_owned()), ("connected_slaves", "0".to_owned())]),
        ("Series", vec![("series", machine.registry().len().to_string())]),
    ]
}
