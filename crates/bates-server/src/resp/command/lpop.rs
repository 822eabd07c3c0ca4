//! `LPOP` and `RPOP`, which are the same: the next numbers of a scope, as texts.

use bates_core::Numbers;

use super::{Action, Call, Command, Outcome, Reply, whole};

/// What one list may hold. A client that does not read it makes us keep it: some megabytes.
pub(super) const LIST_MAX: u64 = 100_000;

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    if call.command.arg_count() > 3 {
        return call.wrong_arguments();
    }
    match call.command.arg(2).map(|_| call.count(2, 0, LIST_MAX)) {
        // The count is wrong, which is answered.
        Some(None) => Outcome::Answered,
        count => Action::Pop(count.flatten()).by_key(call),
    }
}

/// Whether the arguments ask for a number, as far as that can be told before the command is run.
pub(super) fn would_give(command: Command<'_>) -> bool {
    let count = command.arg(2).map(whole);
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
