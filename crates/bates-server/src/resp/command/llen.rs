//! `LLEN`: how many numbers a scope has left. A new scope has all of them.

use bates_core::{Peek, SeriesEntry};

use super::Reply;

pub(super) fn answer(reply: &mut Reply<'_>, _: &SeriesEntry, peek: &Peek) {
    reply.unsigned(peek.left);
}
