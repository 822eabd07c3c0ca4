//! Small talk: `PING`, `ECHO`, `SELECT`, `TIME`.

use std::time::SystemTime;

use super::super::session::Session;
use super::{Command, Reply, wrong_arguments};

pub(super) fn ping(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    match (command.arg(1), command.arg_count()) {
        (None, _) => reply.simple("PONG"),
        (Some(text), 2) => reply.bulk(text),
        _ => wrong_arguments(command, session, output),
    }
}

pub(super) fn echo(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    Reply::new(output, session.protocol).bulk(command.arg(1).unwrap_or_default());
}

pub(super) fn select(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    match command.arg(1) {
        Some(b"0") => reply.simple("OK"),
        _ => reply.error("ERR", "DB index is out of range: there is one, 0"),
    }
}

/// Seconds since 1970, and the microseconds within the second.
pub(super) fn time(session: &Session, output: &mut Vec<u8>) {
    let now = (session.front.settings.wall_clock)();
    // A clock before 1970 is wrong in any case.
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut reply = Reply::new(output, session.protocol);
    reply.array(2);
    reply.bulk(since.as_secs().to_string().as_bytes());
    reply.bulk(since.subsec_micros().to_string().as_bytes());
}
