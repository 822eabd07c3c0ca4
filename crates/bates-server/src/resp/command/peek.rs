//! `BATES.PEEK series [DATE day] [name value …]`: the next position of a scope, without taking it.

use bates_core::{Peek, SeriesEntry};

use super::{Action, Call, Outcome, Reply};

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    Action::Inspect(answer).defer_by_series(call)
}

fn answer(reply: &mut Reply<'_>, _: &SeriesEntry, peek: &Peek) {
    reply.map(4);
    reply.bulk(b"exists");
    reply.integer(i64::from(peek.exists));
    for (name, position) in [(&b"last"[..], peek.last), (b"next", peek.next)] {
        reply.bulk(name);
        match position {
            Some(position) => reply.unsigned(position.value()),
            None => reply.null(),
        }
    }
    reply.bulk(b"left");
    reply.unsigned(peek.left);
}
