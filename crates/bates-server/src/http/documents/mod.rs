//! Documents and reservations: numbering them one by one or as a stream of lines, finding them, and acting on them.

mod assign;
mod lines;
mod outbox;
mod reserve;

pub(super) use assign::*;
pub(super) use lines::SERVER_LINES_MAX;
pub(super) use outbox::*;
pub(super) use reserve::*;
