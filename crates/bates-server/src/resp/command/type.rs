//! `TYPE`: as what Redis would know a scope.

use bates_core::{Entry, Peek};

use super::Reply;

pub(super) fn answer(reply: &mut Reply<'_>, entry: &Entry, peek: &Peek) {
    reply.simple(match peek.exists {
        false => "none",
        true if entry.counts_plainly() => "string",
        true => "list",
    });
}
