//! Finds a command in the table, checks its arguments and runs it. One file per command.
//!
//! Answers from memory are written at once; a command that needs the store becomes a [`Request`].

mod auth;
mod client;
mod cluster;
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
mod memory;
mod mget;
mod multi;
mod next;
mod peek;
mod ping;
mod quit;
mod request;
mod reset;
mod select;
mod subscribe;
mod table;
mod target;
mod time;
mod r#type;
mod unknown;
mod validate;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{ErrorCode, Machine, Right, ScopeKey, SeriesEntry, Store};

use super::session::Session;
use super::transaction::Queue;
use super::{Command, Reply};

use request::Action;
pub(super) use request::Request;
use table::{Handler, Spec};

pub(super) struct Call<'c> {
    pub(super) command: Command<'c>,
    pub(super) session: &'c mut Session,
    pub(super) output: &'c mut Vec<u8>,
}

pub(super) enum Outcome {
    Answered,
    /// The answer needs the store.
    Deferred(Request),
    /// Answered; the limits of the connection may have changed.
    LimitsChanged,
    /// Not answered: the answer is an array of the answers to these commands.
    Queue(Queue),
    /// Answered; the connection ends.
    Quit,
}

const NAME_BYTES_MAX: usize = 16;

/// Executes a command as far as possible without waiting.
pub(super) fn execute<S: Store>(mut call: Call<'_>, machine: &Machine<S>) -> Outcome {
    let mut name = [0; NAME_BYTES_MAX];
    let name = lower(call.command.name(), &mut name);
    let spec = table::find(name);
    if !call.session.is_authenticated()
        && let Some(refused) = refuse_stranger(&mut call, spec)
    {
        return refused;
    }
    if call.session.transaction.is_some() {
        return multi::enqueue(spec, name, &mut call, machine);
    }
    match spec {
        None => unknown::run(name, &mut call),
        Some(spec) if spec.takes(call.command.arg_count()) => run(spec, &mut call, machine),
        Some(_) => call.wrong_arguments(),
    }
}

#[cold]
fn refuse_stranger(call: &mut Call<'_>, spec: Option<&Spec>) -> Option<Outcome> {
    // A transaction of a caller whose secret has ended can still end, without executing anything.
    let ends_transaction = call.session.transaction.is_some() && spec.is_some_and(Spec::ends_transaction);
    let needs_no_auth = ends_transaction || spec.is_some_and(Spec::needs_no_auth);
    if let Err(wait) = call.session.count_stranger(needs_no_auth) {
        let sentence = "too many commands without authentication came from this address";
        return Some(call.refuse_for_rate(sentence, wait));
    }
    (!needs_no_auth).then(|| call.fail("NOAUTH", "Authentication required."))
}

fn run<S: Store>(spec: &Spec, call: &mut Call<'_>, machine: &Machine<S>) -> Outcome {
    let outcome = match spec.handler {
        Handler::Incr => incr::run(1, spec.class.right, call, machine),
        Handler::IncrBy => incrby::run(spec.class.right, call, machine),
        Handler::Pop => lpop::run(spec.class.right, call, machine),
        Handler::Next => next::run(call, machine),
        Handler::Counters => mget::run(call),
        Handler::Inspect(answer) => Action::Inspect(answer).defer_by_key(call),
        Handler::Execute(run) | Handler::Outside(run) | Handler::Control(run) => run(call),
        Handler::Answer(run) => {
            run(call);
            Outcome::Answered
        }
        Handler::Time => {
            time::run(call, machine.now());
            Outcome::Answered
        }
        Handler::Info => {
            info::run(call, count_visible(call.session, machine));
            Outcome::Answered
        }
    };
    match outcome {
        Outcome::Deferred(request) => Outcome::Deferred(request.needs(spec.class.right)),
        outcome => outcome,
    }
}

/// How many series the caller may read.
fn count_visible<S: Store>(session: &Session, machine: &Machine<S>) -> usize {
    let registry = machine.registry();
    registry.entries().filter(|entry| session.check(Right::Read, entry).is_ok()).count()
}

/// What a command that has not begun will need.
pub(super) enum Ahead {
    Numbers {
        entry: Arc<SeriesEntry>,
        scope: ScopeKey,
        count: u64,
    },
    /// It changes whether or when later commands run.
    Barrier,
    Other,
}

/// Looks at a command that issues numbers by key, if the caller may.
pub(super) fn look_ahead<S: Store>(command: Command<'_>, session: &Session, machine: &Machine<S>) -> Ahead {
    let mut name = [0; NAME_BYTES_MAX];
    let Some(spec) = table::find(lower(command.name(), &mut name)) else { return Ahead::Other };
    if matches!(spec.handler, Handler::Outside(_) | Handler::Control(_)) {
        return Ahead::Barrier;
    }
    let key = command.arg(1).and_then(|key| std::str::from_utf8(key).ok());
    let Some(key) = key.filter(|_| spec.takes(command.arg_count())) else { return Ahead::Other };
    let Some(entry) = machine.series_by_key(key) else { return Ahead::Other };
    let count = match spec.handler {
        Handler::Incr => entry.numbers_are_positions().then_some(1),
        // Some clients send `INCRBY key 1` for each increment.
        Handler::IncrBy if entry.numbers_are_positions() => command.arg(2).and_then(parse_count),
        Handler::Pop => lpop::wanted_count(command),
        _ => None,
    };
    // A command for more fetches them itself, all at once.
    let count = count.filter(|count| (1..=entry.series().limits().lease_min).contains(count));
    let may_take = || spec.class.right.is_none_or(|right| session.check_key(right, &entry, key).is_ok());
    if let Some(count) = count
        && may_take()
        && let Some(scope) = machine.scope_of_key(&entry, key)
    {
        return Ahead::Numbers { entry, scope, count };
    }
    Ahead::Other
}

impl Call<'_> {
    fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.output, self.session.protocol)
    }

    fn fail(&mut self, prefix: &str, sentence: impl Display) -> Outcome {
        self.reply().error(prefix, sentence);
        Outcome::Answered
    }

    /// Ends the connection, so that each further request costs its sender more than the server.
    fn refuse_for_rate(&mut self, sentence: &str, wait: Duration) -> Outcome {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let code = ErrorCode::TOO_MANY_REQUESTS;
        self.reply().code(code, format_args!("{sentence}; try again in {seconds} s"));
        Outcome::Quit
    }

    fn wrong_arguments(&mut self) -> Outcome {
        let name = printable(self.command.name()).to_lowercase();
        self.fail("ERR", format_args!("wrong number of arguments for '{name}' command"))
    }

    /// The argument at an index, as a count from `min` to `max`. If it is invalid, answers with an error.
    fn count(&mut self, index: usize, min: u64, max: u64) -> Option<u64> {
        match self.command.arg(index).and_then(parse_count) {
            Some(count) if (min..=max).contains(&count) => return Some(count),
            Some(_) => self.fail("ERR", format_args!("value is out of range, must be {min} to {max}")),
            None => self.fail("ERR", "value is not an integer or out of range"),
        };
        None
    }
}

/// Digits only: a negative count would take numbers back.
fn parse_count(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 20 && text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// A name in lower case, written to `buffer`; empty if it is too long for a command.
fn lower<'r>(name: &[u8], buffer: &'r mut [u8; NAME_BYTES_MAX]) -> &'r [u8] {
    let Some(buffer) = buffer.get_mut(..name.len()) else { return b"" };
    buffer.copy_from_slice(name);
    buffer.make_ascii_lowercase();
    buffer
}

/// The beginning of a client's text, without control characters, which could control a terminal.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).replace(char::is_control, "\u{fffd}")
}
