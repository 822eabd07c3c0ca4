//! `LPOP` and `RPOP`, which are the same: the next numbers of a scope, as texts.

use bates_core::{Numbers, Store};

use super::key::KeyAction;
use super::{Call, Command, Outcome, Reply, whole};

/// What one list may hold. A client that does not read it makes us keep it: some megabytes.
pub(super) const LIST_MAX: u64 = 100_000;

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) -> Outcome {
    if call.command.arg_count() > 3 {
        call.wrong_arguments();
        return Outcome::Answered;
    }
    match call.command.arg(2).map(|_| call.count(2, 0, LIST_MAX)) {
        // The count is wrong, which is answered.
        Some(None) => Outcome::Answered,
        count => call.key().map_or(Outcome::Answered, |key| KeyAction::Pop(count.flatten()).later(key)),
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
