//! The commands that give numbers, `INCR`, `INCRBY`, `LPOP`, `RPOP`, and those that only look at them.
//!
//! A number that is held in memory is answered at once; for the others the command becomes a [`Request`].

use std::sync::Arc;

use bates_core::{By, Code, Entry, Machine, NextError, Numbers, Peek, ScopeName, Store};

use super::super::session::Session;
use super::{Command, Done, Reply, Verb, shown, wrong_arguments};

/// What one addition may take.
const COUNT_MAX: u64 = 1_000_000;

/// What one list may hold. A client that does not read it makes us keep it: some megabytes.
pub(super) const LIST_MAX: u64 = 100_000;

/// A command about a key that has to wait for the store.
pub(in super::super) struct Request {
    key: Box<str>,
    count: u64,
    form: Form,
}

/// How the numbers are answered.
#[derive(Clone, Copy)]
enum Form {
    /// The last one, as an integer.
    Integer,
    /// The only one, as a string.
    Single,
    /// All of them.
    List,
    /// None is taken: only a look.
    Look(Look),
}

/// What a command wants to know of a scope.
#[derive(Clone, Copy)]
pub(super) enum Look {
    /// `GET`: the highest number answered.
    Last,
    /// `LLEN`: how many can still be popped.
    Left,
    /// `EXISTS`: 1 or 0.
    Exists,
    /// `TYPE`: as what Redis would know it.
    Type,
}

pub(super) fn incr<S: Store>(
    command: Command<'_>,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Done {
    match (command.arg(1), command.arg_count()) {
        (Some(key), 2) => integer(key, 1, session, machine, output),
        _ => answered(|| wrong_arguments(command, session, output)),
    }
}

pub(super) fn incr_by<S: Store>(
    command: Command<'_>,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Done {
    let (Some(key), Some(count), 3) = (command.arg(1), command.arg(2), command.arg_count()) else {
        return answered(|| wrong_arguments(command, session, output));
    };
    match whole(count) {
        Some(count @ 1..=COUNT_MAX) => integer(key, count, session, machine, output),
        Some(_) => answered(|| out_of_range(COUNT_MAX, session, output)),
        None => answered(|| not_an_integer(session, output)),
    }
}

pub(super) fn pop<S: Store>(
    command: Command<'_>,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Done {
    let (Some(key), 2 | 3) = (command.arg(1), command.arg_count()) else {
        return answered(|| wrong_arguments(command, session, output));
    };
    let (count, form) = match command.arg(2).map(whole) {
        None => (1, Form::Single),
        Some(Some(count @ 0..=LIST_MAX)) => (count, Form::List),
        Some(Some(_)) => return answered(|| out_of_range(LIST_MAX, session, output)),
        Some(None) => return answered(|| not_an_integer(session, output)),
    };
    if find(key, session, machine, output).is_none() {
        return Done::Answered;
    }
    let key = String::from_utf8_lossy(key).into();
    Done::Later(super::Request::Key(Request { key, count, form }))
}

/// `GET`, `LLEN`, `EXISTS`, `TYPE`: a scope is looked at, and not created.
pub(super) fn look<S: Store>(
    look: Look,
    command: Command<'_>,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Done {
    let (Some(key), 2) = (command.arg(1), command.arg_count()) else {
        return answered(|| wrong_arguments(command, session, output));
    };
    let Some((_, key)) = find(key, session, machine, output) else { return Done::Answered };
    Done::Later(super::Request::Key(Request { key: key.into(), count: 0, form: Form::Look(look) }))
}

/// Whether a command gives numbers of this key, as far as that can be told before it is run.
pub(super) fn would_give<S: Store>(
    verb: Verb,
    command: Command<'_>,
    key: &str,
    machine: &Machine<S>,
) -> bool {
    match verb {
        Verb::Incr => machine.of_key(key).is_some_and(|entry| entry.counts_plainly()),
        Verb::Pop => match command.arg(2) {
            None => true,
            Some(count) => command.arg_count() == 3 && matches!(whole(count), Some(1..=LIST_MAX)),
        },
        _ => false,
    }
}

fn integer<S: Store>(
    key: &[u8],
    count: u64,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Done {
    let Some((entry, key)) = find(key, session, machine, output) else { return Done::Answered };
    if !entry.counts_plainly() {
        return answered(|| not_a_count(&mut Reply::new(output, session.protocol), &entry));
    }
    match machine.try_next_by_key(&entry, key, count, &mut session.scope) {
        Some(taken) => {
            let last = i64::try_from(taken.last()).unwrap_or(i64::MAX);
            answered(|| Reply::new(output, session.protocol).integer(last))
        }
        None => Done::Later(super::Request::Key(Request { key: key.into(), count, form: Form::Integer })),
    }
}

fn find<'k, S: Store>(
    key: &'k [u8],
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Option<(Arc<Entry>, &'k str)> {
    let text = std::str::from_utf8(key).ok();
    let found = text.and_then(|text| Some((machine.of_key(text)?, text)));
    if found.is_none() {
        session.has_missed = true;
        no_such_key(&mut Reply::new(output, session.protocol), key);
    }
    found
}

impl Request {
    /// Waits for the store, and answers.
    pub(in super::super) async fn answer<S: Store>(
        self,
        session: &Session,
        machine: &Machine<S>,
        output: &mut Vec<u8>,
    ) {
        let mut reply = Reply::new(output, session.protocol);
        // It was found before, and may have been retired since.
        let Some(entry) = machine.of_key(&self.key) else {
            return no_such_key(&mut reply, self.key.as_bytes());
        };
        let parameters: Vec<(&str, &str)> = entry
            .key()
            .and_then(|template| template.read(&self.key))
            .map(Iterator::collect)
            .unwrap_or_default();
        let (name, by) = (ScopeName::from(&*parameters), By::resp(session.caller().who()));
        let outcome = match self.form {
            Form::List => {
                machine.next(&entry, name, self.count, by).await.map(|numbers| list(&mut reply, &numbers))
            }
            Form::Single => {
                machine.next(&entry, name, 1, by).await.map(|numbers| single(&mut reply, &numbers))
            }
            Form::Look(look) => {
                machine.peek(&entry, name).await.map(|peek| answer_look(&mut reply, look, &entry, &peek))
            }
            // All or none: an addition that was made in part could not be answered.
            Form::Integer => machine.take(&entry, name, self.count, by).await.map(|taken| {
                reply.integer(i64::try_from(taken.last()).unwrap_or(i64::MAX));
            }),
        };
        if let Err(error) = outcome {
            refuse(&mut reply, &error);
        }
    }
}

fn answer_look(reply: &mut Reply<'_>, look: Look, entry: &Entry, peek: &Peek) {
    match look {
        Look::Exists => reply.integer(i64::from(peek.exists)),
        Look::Type if !peek.exists => reply.simple("none"),
        Look::Type => reply.simple(if entry.counts_plainly() { "string" } else { "list" }),
        // A scope that is not there yet has all of its numbers.
        Look::Left => reply.integer(i64::try_from(peek.left).unwrap_or(i64::MAX)),
        Look::Last if !entry.counts_plainly() => not_a_count(reply, entry),
        Look::Last => match peek.last {
            Some(last) => reply.bulk(last.to_string().as_bytes()),
            None => reply.null(),
        },
    }
}

pub(super) fn list(reply: &mut Reply<'_>, numbers: &Numbers) {
    reply.array(numbers.len());
    for value in numbers.values() {
        reply.bulk(value.as_bytes());
    }
}

pub(super) fn single(reply: &mut Reply<'_>, numbers: &Numbers) {
    match numbers.values().next() {
        Some(value) => reply.bulk(value.as_bytes()),
        None => reply.null(),
    }
}

/// A prefix that programs look at, the stable code, and the sentence.
pub(super) fn refuse(reply: &mut Reply<'_>, error: &NextError) {
    let code = error.code();
    reply.error(code.resp_prefix(), format_args!("{code}: {error}"));
}

fn no_such_key(reply: &mut Reply<'_>, key: &[u8]) {
    let code = Code::BAD_KEY;
    reply.error(code.resp_prefix(), format_args!("{code}: no series has a key like \"{}\"", shown(key)));
}

fn not_a_count(reply: &mut Reply<'_>, entry: &Entry) {
    let (code, name) = (Code::NOT_A_COUNT, entry.series().name());
    let sentence =
        format_args!("{code}: series \"{name}\" gives texts, which cannot be counted up: use LPOP");
    reply.error(code.resp_prefix(), sentence);
}

fn out_of_range(max: u64, session: &Session, output: &mut Vec<u8>) {
    let sentence = format_args!("value is out of range, must be 1 to {max}");
    Reply::new(output, session.protocol).error("ERR", sentence);
}

fn not_an_integer(session: &Session, output: &mut Vec<u8>) {
    Reply::new(output, session.protocol).error("ERR", "value is not an integer or out of range");
}

/// A whole number of at most 20 digits; a sign would take a number back.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 20 && text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

fn answered(answer: impl FnOnce()) -> Done {
    answer();
    Done::Answered
}
