//! `GET`, `LLEN`, `EXISTS`, `TYPE` and `BATES.PEEK`: what is known of a scope, without taking a number.

use bates_core::{Entry, Peek};

use super::request::not_a_count;
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
    Action::Look(answer).by_series(call)
}

fn answer(reply: &mut Reply<'_>, _: &Entry, peek: &Peek) {
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
