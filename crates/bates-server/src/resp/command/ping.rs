//! `PING`: answers PONG, or with its argument.

use super::{Call, Outcome};
use crate::resp::Protocol;

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    // As Redis does: such a client expects every answer to look like a message.
    let is_subscriber = call.session.protocol == Protocol::Resp2 && !call.session.channels.is_empty();
    match (call.command.arg(1), call.command.arg_count()) {
        (text, 1 | 2) if is_subscriber => {
            let mut reply = call.reply();
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(text.unwrap_or_default());
        }
        (None, _) => call.reply().simple("PONG"),
        (Some(text), 2) => call.reply().bulk(text),
        _ => return call.wrong_arguments(),
    }
    Outcome::Answered
}
