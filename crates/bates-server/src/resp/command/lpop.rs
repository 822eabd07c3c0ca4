//! `LPOP` and `RPOP`, which do the same: the next numbers of a scope, as texts.

use bates_core::{Machine, Numbers, Right, SeriesEntry, Store};

use super::{Action, Call, Command, Outcome, Reply, memory, parse_count};

/// Max numbers in one answer: some megabytes, which the server holds until the client reads them.
pub(super) const LIST_MAX: u64 = 100_000;

/// Longer answers are made piece by piece, so that other connections are served in between.
const AT_ONCE_MAX: u64 = 1_024;

pub(super) fn run<S: Store>(right: Option<Right>, call: &mut Call<'_>, machine: &Machine<S>) -> Outcome {
    if call.command.arg_count() > 3 {
        return call.wrong_arguments();
    }
    let count = match call.command.arg(2).map(|_| call.count(2, 0, LIST_MAX)) {
        // The error is answered.
        Some(None) => return Outcome::Answered,
        count => count.flatten(),
    };
    let Some(key) = call.key() else { return Outcome::Answered };
    let Some(entry) = machine.series_by_key(key) else { return Action::Pop(count).defer_unknown(key, call) };
    if let Err(answered) = memory::check(right, key, &entry, call) {
        return answered;
    }
    let Some(template) = entry.key() else { return Action::Pop(count).defer(key) };
    call.session.scope_buffer.clear();
    template.write_scope(key, &mut call.session.scope_buffer);
    match pop(count, &entry, call, machine) {
        Some(()) => Outcome::Answered,
        None => Action::Pop(count).defer(key),
    }
}

/// Takes from memory the numbers of the scope in the buffer of the session, and answers. `None` if the store is needed.
pub(super) fn pop<S: Store>(
    count: Option<u64>,
    entry: &SeriesEntry,
    call: &mut Call<'_>,
    machine: &Machine<S>,
) -> Option<()> {
    let wanted = count.unwrap_or(1);
    if !(1..=AT_ONCE_MAX).contains(&wanted) {
        return None;
    }
    memory::take(wanted, call, machine, |call| {
        let Call { session, output, .. } = call;
        let mut reply = Reply::new(output, session.protocol);
        let scope = session.scope_buffer.as_str();
        if count.is_none() {
            return machine.try_pop(entry, scope, |value| reply.bulk(value));
        }
        let numbers = machine.try_pop_many(entry, scope, wanted)?;
        reply.array(numbers.len());
        reply.bulks(&numbers);
        Some(())
    })
}

/// How many numbers the command would issue, as far as its arguments show.
pub(super) fn wanted_count(command: Command<'_>) -> Option<u64> {
    command.arg(2).map_or(Some(1), parse_count).filter(|_| command.arg_count() <= 3)
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
