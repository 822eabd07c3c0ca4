//! `INCR`: the next number of a scope, as an integer. Invariant: a number from memory needs no allocation.

use bates_core::{Machine, Right, SeriesEntry, Store, TakenPositions};

use super::request::refuse_increment;
use super::{Action, Call, Outcome, Reply, memory};

/// Takes `count` consecutive numbers; more than one for `INCRBY`.
pub(super) fn run<S: Store>(
    count: u64,
    right: Option<Right>,
    call: &mut Call<'_>,
    machine: &Machine<S>,
) -> Outcome {
    let Some(key) = call.key() else { return Outcome::Answered };
    let Some(entry) = machine.series_by_key(key) else { return Action::Take(count).defer_unknown(key, call) };
    if let Err(answered) = memory::check(right, key, &entry, call) {
        return answered;
    }
    if !entry.numbers_are_positions() {
        refuse_increment(&mut call.reply(), &entry);
        return Outcome::Answered;
    }
    match memory::take(count, call, machine, |call| take(count, key, &entry, call, machine)) {
        Some(()) => Outcome::Answered,
        None => Action::Take(count).defer(key),
    }
}

#[inline]
fn take<S: Store>(
    count: u64,
    key: &str,
    entry: &SeriesEntry,
    call: &mut Call<'_>,
    machine: &Machine<S>,
) -> Option<()> {
    let taken = machine.try_next_by_key(entry, key, count, &mut call.session.scope_buffer)?;
    answer(&mut call.reply(), &taken);
    Some(())
}

pub(super) fn answer(reply: &mut Reply<'_>, taken: &TakenPositions) {
    reply.unsigned(taken.last());
}
