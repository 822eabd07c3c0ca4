//! `BATES.PEEK series [DATE day] [name value …]`: what comes next in a scope, without taking it.

use bates_core::{Peek, Store};

use super::named::NamedAction;
use super::{Call, Outcome, Reply};

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) -> Outcome {
    NamedAction::Peek.read(call)
}

pub(super) fn answer(reply: &mut Reply<'_>, peek: &Peek) {
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
