//! `BATES.NEXT`, `BATES.PEEK` and `BATES.VALIDATE`: a series by its name, for those that have no key or need
//! more than a key can say.

use bates_core::{By, Code, Machine, NextError, Peek, ScopeName, Store};
use bates_pattern::Date;

use super::super::session::Session;
use super::number::{LIST_MAX, list, refuse, single, whole};
use super::{Command, Done, Reply, shown, wrong_arguments};

/// A question about a series that has to wait for the store.
pub(in super::super) struct Request {
    series: String,
    parameters: Vec<(String, String)>,
    date: Option<Date>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// The next number.
    One,
    /// The next numbers.
    Several(u64),
    /// None is taken: only a look.
    Peek,
}

/// `BATES.NEXT series [COUNT n] [DATE day] [name value …]`
pub(super) fn next(command: Command<'_>, session: &Session, output: &mut Vec<u8>) -> Done {
    later(Kind::One, command, session, output)
}

/// `BATES.PEEK series [DATE day] [name value …]`
pub(super) fn peek(command: Command<'_>, session: &Session, output: &mut Vec<u8>) -> Done {
    later(Kind::Peek, command, session, output)
}

fn later(kind: Kind, command: Command<'_>, session: &Session, output: &mut Vec<u8>) -> Done {
    // The name of the command, the series, and pairs.
    if !command.arg_count().is_multiple_of(2) {
        wrong_arguments(command, session, output);
        return Done::Answered;
    }
    let text = |at: usize| String::from_utf8_lossy(command.arg(at).unwrap_or_default()).into_owned();
    let mut request = Request { series: text(1), parameters: Vec::new(), date: None, kind };
    for at in (2..command.arg_count()).step_by(2) {
        let (name, value) = (text(at), text(at + 1));
        match &*name.to_ascii_lowercase() {
            "count" if !matches!(kind, Kind::Peek) => match whole(value.as_bytes()) {
                Some(count @ 1..=LIST_MAX) => request.kind = Kind::Several(count),
                _ => return refused(Code::BAD_COUNT, &format!("count is 1 to {LIST_MAX}"), session, output),
            },
            "date" => match value.parse::<Date>().ok().filter(|date| date.to_string() == value) {
                Some(date) => request.date = Some(date),
                None => return refused(Code::BAD_DATE, "date is a day, YYYY-MM-DD", session, output),
            },
            _ => request.parameters.push((name, value)),
        }
    }
    Done::Later(super::Request::Name(request))
}

/// `BATES.VALIDATE series id`: whether it could be one of its numbers, and everything that speaks against it.
pub(super) fn validate<S: Store>(
    command: Command<'_>,
    session: &mut Session,
    machine: &Machine<S>,
    output: &mut Vec<u8>,
) -> Done {
    let text = |at: usize| std::str::from_utf8(command.arg(at).unwrap_or_default());
    let Some(entry) = text(1).ok().and_then(|name| machine.named(name)) else {
        session.has_missed = true;
        return unknown(command.arg(1).unwrap_or_default(), session, output);
    };
    let Ok(id) = text(2) else {
        return refused(Code::BAD_ARGUMENTS, "the text is not UTF-8", session, output);
    };
    let verdict = entry.series().pattern().validate(id);
    let mut reply = Reply::new(output, session.protocol);
    reply.map(2);
    reply.bulk(b"valid");
    reply.integer(i64::from(verdict.is_valid()));
    reply.bulk(b"reasons");
    reply.array(verdict.reasons().len());
    for reason in verdict.reasons() {
        reply.bulk(format!("{}: {reason}", reason.code()).as_bytes());
    }
    Done::Answered
}

impl Request {
    /// Waits for the store, and answers.
    pub(super) async fn answer<S: Store>(
        self,
        session: &Session,
        machine: &Machine<S>,
        output: &mut Vec<u8>,
    ) {
        let Some(entry) = machine.named_anywhere(&self.series).await else {
            unknown(self.series.as_bytes(), session, output);
            return;
        };
        let parameters: Vec<(&str, &str)> =
            self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let name = ScopeName { parameters: &parameters, date: self.date };
        let by = By::resp(session.caller().who());
        let mut reply = Reply::new(output, session.protocol);
        let outcome: Result<(), NextError> = match self.kind {
            Kind::One => machine.next(&entry, name, 1, by).await.map(|numbers| single(&mut reply, &numbers)),
            Kind::Several(count) => {
                machine.next(&entry, name, count, by).await.map(|numbers| list(&mut reply, &numbers))
            }
            Kind::Peek => machine.peek(&entry, name).await.map(|peek| tell(&mut reply, &peek)),
        };
        if let Err(error) = outcome {
            refuse(&mut reply, &error);
        }
    }
}

fn tell(reply: &mut Reply<'_>, peek: &Peek) {
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    reply.map(4);
    reply.bulk(b"exists");
    reply.integer(i64::from(peek.exists));
    for (name, position) in [(&b"last"[..], peek.last), (b"next", peek.next)] {
        reply.bulk(name);
        match position {
            Some(position) => reply.integer(integer(position)),
            None => reply.null(),
        }
    }
    reply.bulk(b"left");
    reply.integer(integer(peek.left));
}

fn unknown(name: &[u8], session: &Session, output: &mut Vec<u8>) -> Done {
    refused(Code::UNKNOWN_SERIES, &format!("there is no series \"{}\"", shown(name)), session, output)
}

fn refused(code: Code, sentence: &str, session: &Session, output: &mut Vec<u8>) -> Done {
    Reply::new(output, session.protocol).error(code.resp_prefix(), format_args!("{code}: {sentence}"));
    Done::Answered
}
