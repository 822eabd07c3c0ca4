//! Documents and reservations: numbered one by one or as a stream of lines, looked up, and decided on.

mod assign;
mod lines;
mod outbox;
mod reserve;

pub(super) use assign::*;
pub(super) use lines::LINES_OF_ALL;
pub(super) use outbox::*;
pub(super) use reserve::*;
