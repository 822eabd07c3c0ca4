//! `EXISTS`: whether a scope has issued numbers, as 1 or 0.

use bates_core::{Peek, SeriesEntry};

use super::Reply;

pub(super) fn answer(reply: &mut Reply<'_>, _: &SeriesEntry, peek: &Peek) {
    reply.integer(i64::from(peek.exists));
}
