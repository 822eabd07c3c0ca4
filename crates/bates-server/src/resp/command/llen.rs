//! `LLEN`: how many numbers a scope has left. A scope that is not there yet has all of them.

use bates_core::{Entry, Peek};

use super::Reply;

pub(super) fn answer(reply: &mut Reply<'_>, _: &Entry, peek: &Peek) {
    reply.count(peek.left);
}
