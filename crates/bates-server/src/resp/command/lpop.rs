//! `LPOP` and `RPOP`, which do the same: the next numbers of a scope, as texts.

use bates_core::Numbers;

use super::{Action, Call, Command, Outcome, Reply, parse_count};

/// Max numbers in one answer: some megabytes, which the server holds until the client reads them.
pub(super) const LIST_MAX: u64 = 100_000;

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    if call.command.arg_count() > 3 {
        return call.wrong_arguments();
    }
    match call.command.arg(2).map(|_| call.count(2, 0, LIST_MAX)) {
        // The error is answered.
        Some(None) => Outcome::Answered,
        count => Action::Pop(count.flatten()).defer_by_key(call),
    }
}

/// Whether the command would issue a number, as far as its arguments show.
pub(super) fn would_issue(command: Command<'_>) -> bool {
    let count = command.arg(2).map(parse_count);
    count.is_none() || command.arg_count() == 3 && matches!(count, Some(Some(1..=LIST_MAX)))
}

/// The only number, or a list if a count was given.
pub(super) fn answer(reply: &mut Reply<'_>, count: Option<u64>, numbers: &Numbers) {
    if count.is_some() {
        reply.array(numbers.len());
        numbers.values().for_each(|value| reply.bulk(value.as_bytes()));
    } else if let Some(value) = numbers.values().next() {
        reply.bulk(value.as_bytes());
    } else {
        reply.null();
    }
}
