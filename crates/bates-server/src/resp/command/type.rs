//! `TYPE`: the Redis type of a scope.

use bates_core::{Peek, SeriesEntry};

use super::Reply;

pub(super) fn answer(reply: &mut Reply<'_>, entry: &SeriesEntry, peek: &Peek) {
    reply.simple(match peek.exists {
        false => "none",
        true if entry.numbers_are_positions() => "string",
        true => "list",
    });
}
