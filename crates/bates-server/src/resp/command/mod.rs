//! Commands by name: found in the table, checked against it, and run. Each command is a file.
//!
//! What can be answered from memory is answered at once; a command that needs the store becomes a [`Request`].

mod auth;
mod client;
mod commands;
mod config;
mod echo;
mod exists;
mod get;
mod hello;
mod incr;
mod incrby;
mod info;
mod llen;
mod lpop;
mod next;
mod peek;
mod ping;
mod quit;
mod request;
mod reset;
mod select;
mod table;
mod time;
mod r#type;
mod unknown;
mod validate;

use std::fmt::Display;

use bates_core::{Machine, Store};

use super::session::Session;
use super::{Command, Reply};

use request::{Action, Request};
use table::Run;

pub(super) struct Call<'c> {
    pub(super) command: Command<'c>,
    pub(super) session: &'c mut Session,
    pub(super) output: &'c mut Vec<u8>,
}

pub(super) enum Outcome {
    Answered,
    /// Its answer needs the store.
    Later(Request),
    /// Its answer is written, and what the client may send has changed.
    Limited,
    /// Its answer is written, and the client wants to leave, or has to.
    Quit,
}

/// The longest name of a command; a longer one is unknown.
const NAME_BYTES_MAX: usize = 16;

/// Executes a command as far as that goes without waiting.
pub(super) fn execute<S: Store>(mut call: Call<'_>, machine: &Machine<S>) -> Outcome {
    let mut name = [0; NAME_BYTES_MAX];
    let name = lower(call.command.name(), &mut name);
    let spec = table::find(name);
    if !call.session.is_admitted() && !spec.is_some_and(table::Spec::is_for_strangers) {
        return call.fail("NOAUTH", "Authentication required.");
    }
    match spec {
        None => unknown::run(name, &mut call),
        Some(spec) if spec.takes(call.command.arg_count()) => run(spec.run, &mut call, machine),
        Some(_) => call.wrong_arguments(),
    }
}

fn run<S: Store>(run: Run, call: &mut Call<'_>, machine: &Machine<S>) -> Outcome {
    match run {
        Run::Incr => return incr::run(1, call, machine),
        Run::IncrBy => return incrby::run(call, machine),
        Run::Pop => return lpop::run(call),
        Run::Look(answer) => return Action::Look(answer).by_key(call),
        Run::Ask(run) | Run::Greet(run) => return run(call),
        Run::Say(run) => run(call),
        Run::Time => time::run(call, machine.now()),
        Run::Info => info::run(call, machine.registry().len()),
    }
    Outcome::Answered
}

/// Has the numbers fetched that a command will ask for, if it is one that gives numbers by key and nothing speaks
/// against it. Answers whether commands behind it may be looked at: not behind one after which they may not be run.
pub(super) fn warm<S: Store>(command: Command<'_>, machine: &Machine<S>) -> bool {
    let mut name = [0; NAME_BYTES_MAX];
    let Some(spec) = table::find(lower(command.name(), &mut name)) else { return true };
    let would_give = |key: &str| match spec.run {
        Run::Incr => machine.series_by_key(key).is_some_and(|entry| entry.is_plain_count()),
        Run::Pop => lpop::would_give(command),
        _ => false,
    };
    if spec.takes(command.arg_count())
        && let Some(Ok(key)) = command.arg(1).map(std::str::from_utf8)
        && would_give(key)
    {
        machine.prefetch_by_key(key);
    }
    !matches!(spec.run, Run::Greet(_))
}

impl Call<'_> {
    fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.output, self.session.protocol)
    }

    fn fail(&mut self, prefix: &str, sentence: impl Display) -> Outcome {
        self.reply().error(prefix, sentence);
        Outcome::Answered
    }

    fn wrong_arguments(&mut self) -> Outcome {
        let name = shown(self.command.name()).to_lowercase();
        self.fail("ERR", format_args!("wrong number of arguments for '{name}' command"))
    }

    /// The argument at an index, as a count from `least` to `max`. `None`: it is something else, which is answered.
    fn count(&mut self, index: usize, least: u64, max: u64) -> Option<u64> {
        match self.command.arg(index).and_then(whole) {
            Some(count) if (least..=max).contains(&count) => return Some(count),
            Some(_) => self.fail("ERR", format_args!("value is out of range, must be 1 to {max}")),
            None => self.fail("ERR", "value is not an integer or out of range"),
        };
        None
    }
}

/// A whole number of at most 20 digits; a sign would take a number back.
fn whole(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 20 && text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
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
