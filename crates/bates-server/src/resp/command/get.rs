//! `GET`: the highest number that a scope has issued.

use bates_core::{Peek, SeriesEntry};

use super::Reply;
use super::request::refuse_increment;

pub(super) fn answer(reply: &mut Reply<'_>, entry: &SeriesEntry, peek: &Peek) {
    match peek.last {
        _ if !entry.numbers_are_positions() => refuse_increment(reply, entry),
        Some(last) => reply.bulk(last.to_string().as_bytes()),
        None => reply.null(),
    }
}
