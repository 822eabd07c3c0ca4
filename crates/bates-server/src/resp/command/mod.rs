//! Commands by name. Owns the table; each family is a file.

mod number;
mod refused;
mod talk;

use bates_core::{Machine, Store};

use super::session::Session;
use super::{Command, Reply};

use number::Look;
pub(super) use number::Request;

/// How a command ended.
pub(super) enum Done {
    /// Its answer is written.
    Answered,
    /// Its answer needs the store.
    Later(Request),
    /// Its answer is written, and the client wants to leave.
    Quit,
}

/// The longest name of a command; a longer one is unknown.
const NAME_BYTES_MAX: usize = 16;

/// Executes a command as far as that goes without waiting.
pub(super) fn execute<S: Store>(
    command: Command<'_>,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Done {
    let mut name = [0; NAME_BYTES_MAX];
    let name = upper(command.name(), &mut name);
    match name {
        b"INCR" => number::incr(command, session, machine, output),
        b"INCRBY" => number::incr_by(command, session, machine, output),
        b"LPOP" | b"RPOP" => number::pop(command, session, machine, output),
        b"GET" => number::look(Look::Last, command, session, machine, output),
        b"LLEN" => number::look(Look::Left, command, session, machine, output),
        b"EXISTS" => number::look(Look::Exists, command, session, machine, output),
        b"TYPE" => number::look(Look::Type, command, session, machine, output),
        b"QUIT" => {
            Reply::new(output, session.protocol).simple("OK");
            Done::Quit
        }
        _ => {
            if !talk::execute(name, command, session, machine, output) {
                refused::execute(name, command, session, output);
            }
            Done::Answered
        }
    }
}

/// A name in upper case, in the caller's room; empty if it is too long to be one.
fn upper<'r>(name: &[u8], room: &'r mut [u8; NAME_BYTES_MAX]) -> &'r [u8] {
    let Some(room) = room.get_mut(..name.len()) else { return b"" };
    room.copy_from_slice(name);
    room.make_ascii_uppercase();
    room
}

/// A text of a client as it may stand in an answer: short, and nothing that steers a terminal.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(64)])
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

fn wrong_arguments(command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let name = shown(command.name()).to_lowercase();
    Reply::new(output, session.protocol)
        .error("ERR", format_args!("wrong number of arguments for '{name}' command"));
}
