//! `PING`, `ECHO`, `SELECT`, `TIME`, `RESET` and `QUIT`: commands that know no series.

use jiff::Timestamp;

use super::{Call, Outcome};

pub(super) fn ping(call: &mut Call<'_>) -> Outcome {
    match (call.command.arg(1), call.command.arg_count()) {
        (None, _) => call.reply().simple("PONG"),
        (Some(text), 2) => call.reply().bulk(text),
        _ => return call.wrong_arguments(),
    }
    Outcome::Answered
}

pub(super) fn echo(call: &mut Call<'_>) {
    let text = call.command.arg(1).unwrap_or_default();
    call.reply().bulk(text);
}

pub(super) fn select(call: &mut Call<'_>) {
    match call.command.arg(1) {
        Some(b"0") => call.reply().simple("OK"),
        _ => call.reply().error("ERR", "DB index is out of range: there is one, 0"),
    }
}

/// Seconds since 1970, and the microseconds within the second.
pub(super) fn time(call: &mut Call<'_>, now: Timestamp) {
    let micros = now.as_microsecond();
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk(micros.div_euclid(1_000_000).to_string().as_bytes());
    reply.bulk(micros.rem_euclid(1_000_000).to_string().as_bytes());
}

/// Where the server has a secret, the client is a stranger again.
pub(super) fn reset(call: &mut Call<'_>) -> Outcome {
    call.session.reset();
    call.reply().simple("RESET");
    Outcome::Limited
}

pub(super) fn quit(call: &mut Call<'_>) -> Outcome {
    call.reply().simple("OK");
    Outcome::Quit
}
