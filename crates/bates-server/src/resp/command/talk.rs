//! Small talk: `PING`, `ECHO`, `SELECT`, `TIME`.

use bates_core::{Machine, Store};

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
pub(super) fn time<S: Store>(session: &Session, machine: &Machine<S>, output: &mut Vec<u8>) {
    let micros = machine.now().as_microsecond();
    let mut reply = Reply::new(output, session.protocol);
    reply.array(2);
    reply.bulk(micros.div_euclid(1_000_000).to_string().as_bytes());
    reply.bulk(micros.rem_euclid(1_000_000).to_string().as_bytes());
}
