//! `GET`, `LLEN`, `EXISTS`, `TYPE`, `BATES.PEEK` and `BATES.VALIDATE`: questions, which take no number.

use bates_core::{Code, Entry, Peek};

use super::request::{not_a_count, refuse};
use super::{Action, Call, Outcome, Reply};

pub(super) fn get(reply: &mut Reply<'_>, entry: &Entry, peek: &Peek) {
    match peek.last {
        _ if !entry.counts_plainly() => not_a_count(reply, entry),
        Some(last) => reply.bulk(last.to_string().as_bytes()),
        None => reply.null(),
    }
}

/// A scope that does not exist yet has all its numbers left.
pub(super) fn llen(reply: &mut Reply<'_>, _: &Entry, peek: &Peek) {
    reply.count(peek.left);
}

pub(super) fn exists(reply: &mut Reply<'_>, _: &Entry, peek: &Peek) {
    reply.integer(peek.exists.into());
}

pub(super) fn r#type(reply: &mut Reply<'_>, entry: &Entry, peek: &Peek) {
    reply.simple(match peek.exists {
        false => "none",
        true if entry.counts_plainly() => "string",
        true => "list",
    });
}

/// `BATES.PEEK series [DATE day] [name value …]`.
pub(super) fn peek(call: &mut Call<'_>) -> Outcome {
    Action::Look(answer_peek).by_series(call)
}

fn answer_peek(reply: &mut Reply<'_>, _: &Entry, peek: &Peek) {
    reply.map(4);
    reply.bulk(b"exists");
    reply.integer(peek.exists.into());
    for (name, position) in [(&b"last"[..], peek.last), (b"next", peek.next)] {
        reply.bulk(name);
        match position {
            Some(position) => reply.count(position),
            None => reply.null(),
        }
    }
    reply.bulk(b"left");
    reply.count(peek.left);
}

/// `BATES.VALIDATE series text`.
pub(super) fn validate(call: &mut Call<'_>) -> Outcome {
    Action::Validate(call.command.arg(2).unwrap_or_default().into()).by_series(call)
}

pub(super) fn answer_verdict(reply: &mut Reply<'_>, entry: &Entry, text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return refuse(reply, Code::BAD_ARGUMENTS, "the text is not UTF-8");
    };
    let verdict = entry.series().pattern().validate(text);
    reply.map(2);
    reply.bulk(b"valid");
    reply.integer(i64::from(verdict.is_valid()));
    reply.bulk(b"reasons");
    reply.array(verdict.reasons().len());
    for reason in verdict.reasons() {
        reply.bulk(format!("{}: {reason}", reason.code()).as_bytes());
    }
}
