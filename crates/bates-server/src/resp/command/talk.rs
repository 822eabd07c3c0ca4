//! The commands that clients talk with before and between those that give numbers.

use bates_core::{Machine, Store};

use super::super::session::Session;
use super::{Command, Reply, shown, wrong_arguments};
use crate::resp::Protocol;

/// The longest name of a connection.
const NAME_BYTES_MAX: usize = 64;

/// Executes the command if it is one of these.
pub(super) fn execute<S: Store>(
    name: &[u8],
    command: Command<'_>,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> bool {
    match name {
        b"PING" => ping(command, session, output),
        b"ECHO" => echo(command, session, output),
        b"HELLO" => hello(command, session, output),
        b"SELECT" => select(command, session, output),
        b"AUTH" => Reply::new(output, session.protocol)
            .error("ERR", "AUTH is called without any password configured"),
        b"CLIENT" => client(command, session, output),
        b"COMMAND" => about_commands(command, session, output),
        b"CONFIG" => config(command, session, output),
        b"INFO" => info(session, machine, output),
        b"RESET" => {
            *session = Session::default();
            Reply::new(output, session.protocol).simple("RESET");
        }
        _ => return false,
    }
    true
}

fn ping(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    match (command.arg(1), command.arg_count()) {
        (None, _) => reply.simple("PONG"),
        (Some(text), 2) => reply.bulk(text),
        _ => wrong_arguments(command, session, output),
    }
}

fn echo(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    match (command.arg(1), command.arg_count()) {
        (Some(text), 2) => Reply::new(output, session.protocol).bulk(text),
        _ => wrong_arguments(command, session, output),
    }
}

/// `HELLO [2|3 …]`: the version, and who we are.
fn hello(command: Command<'_>, session: &mut Session, output: &mut Vec<u8>) {
    match command.arg(1) {
        None => {}
        Some(b"2") => session.protocol = Protocol::Resp2,
        Some(b"3") => session.protocol = Protocol::Resp3,
        Some(_) => {
            Reply::new(output, session.protocol).error("NOPROTO", "unsupported protocol version");
            return;
        }
    }
    let version = if session.protocol == Protocol::Resp3 { 3 } else { 2 };
    let mut reply = Reply::new(output, session.protocol);
    reply.map(5);
    for (name, value) in [
        ("server", "bates"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("mode", "standalone"),
        ("role", "master"),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(version);
}

fn select(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    match command.arg(1) {
        Some(b"0") => reply.simple("OK"),
        Some(_) => reply.error("ERR", "DB index is out of range: there is one, 0"),
        None => wrong_arguments(command, session, output),
    }
}

fn client(command: Command<'_>, session: &mut Session, output: &mut Vec<u8>) {
    let what = command.arg(1).map(<[u8]>::to_ascii_uppercase);
    match (what.as_deref(), command.arg(2)) {
        (Some(b"SETNAME"), Some(name))
            if name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic) =>
        {
            session.name = shown(name);
            Reply::new(output, session.protocol).simple("OK");
        }
        (Some(b"SETNAME"), Some(_)) => {
            let sentence = "a name is up to 64 visible characters without spaces";
            Reply::new(output, session.protocol).error("ERR", sentence);
        }
        (Some(b"GETNAME"), _) => Reply::new(output, session.protocol).bulk(session.name.as_bytes()),
        (Some(b"SETINFO" | b"NO-EVICT" | b"NO-TOUCH"), Some(_)) => {
            Reply::new(output, session.protocol).simple("OK");
        }
        (Some(_), _) => Reply::new(output, session.protocol).error("ERR", "unknown subcommand of CLIENT"),
        (None, _) => wrong_arguments(command, session, output),
    }
}

/// Clients ask to learn where keys stand in commands; none of ours needs that.
fn about_commands(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    match command.arg(1).map(<[u8]>::to_ascii_uppercase).as_deref() {
        Some(b"COUNT") => reply.integer(0),
        Some(b"DOCS") => reply.map(0),
        _ => reply.array(0),
    }
}

/// What `redis-benchmark` asks for before it starts.
fn config(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    match (command.arg(1).map(<[u8]>::to_ascii_uppercase).as_deref(), command.arg(2)) {
        (Some(b"GET"), Some(name @ (b"save" | b"appendonly"))) => {
            reply.map(1);
            reply.bulk(name);
            reply.bulk(if name == b"save" { b"" } else { b"yes" });
        }
        (Some(b"GET"), Some(_)) => reply.map(0),
        _ => reply.error("ERR", "only CONFIG GET is known: the configuration is a file"),
    }
}

fn info<S: Store>(session: &Session, machine: &Machine<S>, output: &mut Vec<u8>) {
    let series = machine.registry().len();
    let text = format!(
        "# Server\r\nserver_name:bates\r\nbates_version:{}\r\n# Series\r\nseries:{series}\r\n",
        env!("CARGO_PKG_VERSION")
    );
    Reply::new(output, session.protocol).verbatim(&text);
}
