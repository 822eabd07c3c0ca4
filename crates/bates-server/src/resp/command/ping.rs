//! `PING`: answers PONG, or with its argument.

use super::{Call, Outcome};

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    match (call.command.arg(1), call.command.arg_count()) {
        (None, _) => call.reply().simple("PONG"),
        (Some(text), 2) => call.reply().bulk(text),
        _ => return call.wrong_arguments(),
    }
    Outcome::Answered
}
