//! `BATES.VALIDATE series text`: whether a text could be a number of the series, and every reason why not.

use bates_core::{ErrorCode, SeriesEntry};

use super::request::refuse;
use super::{Action, Call, Outcome, Reply};

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    Action::Validate(call.command.arg(2).unwrap_or_default().into()).defer_by_series(call)
}

pub(super) fn answer(reply: &mut Reply<'_>, entry: &SeriesEntry, text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return refuse(reply, ErrorCode::BAD_ARGUMENTS, "the text is not UTF-8");
    };
    let verdict = entry.series().pattern().validate(text);
    reply.map(2);
    reply.bulk(b"valid");
    reply.integer(i64::from(verdict.is_valid()));
    reply.bulk(b"reasons");
    reply.array(verdict.reasons().len());
    for reason in verdict.reasons() {
        reply.bulk(format!("{}: {reason}", reason.code()).as_bytes());
    }
}
