//! Commands by name: found in the table, checked against it, and run. Each family is a file.

mod about;
mod admission;
mod by_name;
mod client;
mod number;
mod refused;
mod report;
mod table;
mod talk;

use bates_core::{Machine, Store};

use super::session::Session;
use super::{Command, Reply};

use number::Look;
use table::Verb;

/// How a command ended.
pub(super) enum Done {
    /// Its answer is written.
    Answered,
    /// Its answer needs the store.
    Later(Request),
    /// Its answer is written, and what the client may send has changed.
    Limited,
    /// Its answer is written, and the client wants to leave, or has to.
    Quit,
}

/// A command that has to wait for the store.
pub(super) enum Request {
    /// About the scope that a key names.
    Key(number::Request),
    /// About a series that is named.
    Name(by_name::Request),
}

impl Request {
    /// Waits for the store, and answers.
    pub(super) async fn answer<S: Store>(
        self,
        session: &Session,
        machine: &Machine<S>,
        output: &mut Vec<u8>,
    ) {
        match self {
            Self::Key(request) => request.answer(session, machine, output).await,
            Self::Name(request) => request.answer(session, machine, output).await,
        }
    }
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
    let name = lower(command.name(), &mut name);
    let spec = table::find(name);
    if !session.is_admitted() && !spec.is_some_and(table::Spec::is_for_strangers) {
        Reply::new(output, session.protocol).error("NOAUTH", "Authentication required.");
        return Done::Answered;
    }
    let Some(spec) = spec else {
        refused::execute(name, command, session, output);
        return Done::Answered;
    };
    if !spec.takes(command.arg_count()) {
        wrong_arguments(command, session, output);
        return Done::Answered;
    }
    match spec.verb {
        Verb::Incr => number::incr(command, session, machine, output),
        Verb::IncrBy => number::incr_by(command, session, machine, output),
        Verb::Pop => number::pop(command, session, machine, output),
        Verb::Get => number::look(Look::Last, command, session, machine, output),
        Verb::Llen => number::look(Look::Left, command, session, machine, output),
        Verb::Exists => number::look(Look::Exists, command, session, machine, output),
        Verb::Type => number::look(Look::Type, command, session, machine, output),
        Verb::Next => by_name::next(command, session, output),
        Verb::Peek => by_name::peek(command, session, output),
        Verb::Validate => by_name::validate(command, session, machine, output),
        verb => converse(verb, command, session, machine, output),
    }
}

/// Has the numbers fetched that a command will ask for, if it is one that gives numbers by key and nothing speaks
/// against it. Answers whether commands behind it may be looked at: not behind one after which they may not be run.
pub(super) fn warm<S: Store>(command: Command<'_>, machine: &Machine<S>) -> bool {
    let mut name = [0; NAME_BYTES_MAX];
    let Some(spec) = table::find(lower(command.name(), &mut name)) else { return true };
    match spec.verb {
        Verb::Auth | Verb::Hello | Verb::Reset | Verb::Quit => false,
        verb => {
            if spec.takes(command.arg_count())
                && let Some(Ok(key)) = command.arg(1).map(std::str::from_utf8)
                && number::would_give(verb, command, key, machine)
            {
                machine.warm_by_key(key);
            }
            true
        }
    }
}

/// What clients say before and between the commands that give numbers.
fn converse<S: Store>(
    verb: Verb,
    command: Command<'_>,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Done {
    match verb {
        Verb::Auth => return admission::auth(command, session, output),
        Verb::Hello => return admission::hello(command, session, output),
        Verb::Reset => return admission::reset(session, output),
        Verb::Quit => {
            Reply::new(output, session.protocol).simple("OK");
            return Done::Quit;
        }
        Verb::Ping => talk::ping(command, session, output),
        Verb::Echo => talk::echo(command, session, output),
        Verb::Select => talk::select(command, session, output),
        Verb::Time => talk::time(session, machine, output),
        Verb::Client => client::execute(command, session, output),
        Verb::Command => about::execute(command, session, output),
        Verb::Config => report::config(command, session, output),
        Verb::Info => report::info(command, session, machine, output),
        // Those that give numbers were run before.
        _ => {}
    }
    Done::Answered
}

/// A name in lower case, in the caller's room; empty if it is too long to be one.
fn lower<'r>(name: &[u8], room: &'r mut [u8; NAME_BYTES_MAX]) -> &'r [u8] {
    let Some(room) = room.get_mut(..name.len()) else { return b"" };
    room.copy_from_slice(name);
    room.make_ascii_lowercase();
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
