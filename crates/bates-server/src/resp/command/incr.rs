//! `INCR`: the next number of a scope, as an integer. Invariant: a number from memory needs no allocation.

use bates_core::{Machine, Right, SeriesEntry, Store, TakenPositions};

use super::request::{deny_key, refuse_increment};
use super::{Action, Call, Outcome, Reply};

/// Takes `count` consecutive numbers; more than one for `INCRBY`.
pub(super) fn run<S: Store>(
    count: u64,
    right: Option<Right>,
    call: &mut Call<'_>,
    machine: &Machine<S>,
) -> Outcome {
    let Some(key) = call.key() else { return Outcome::Answered };
    let Some(entry) = machine.series_by_key(key) else { return Action::Take(count).defer(key) };
    if !call.session.caller().takes_freely() {
        return run_checked(count, right, key, &entry, call, machine);
    }
    if !entry.numbers_are_positions() {
        refuse_increment(&mut call.reply(), &entry);
        return Outcome::Answered;
    }
    take(count, key, &entry, call, machine).unwrap_or_else(|| Action::Take(count).defer(key))
}

/// As [`run`], for a caller whose rights or numbers are limited.
#[inline(never)]
fn run_checked<S: Store>(
    count: u64,
    right: Option<Right>,
    key: &str,
    entry: &SeriesEntry,
    call: &mut Call<'_>,
    machine: &Machine<S>,
) -> Outcome {
    if let Some(right) = right
        && let Err(denial) = call.session.check_key(right, entry, key)
    {
        deny_key(&mut call.reply(), key, &denial);
        return Outcome::Answered;
    }
    if !entry.numbers_are_positions() {
        refuse_increment(&mut call.reply(), entry);
        return Outcome::Answered;
    }
    if let Some(payment) = call.session.caller().try_take_allowance(machine, count) {
        if let Some(outcome) = take(count, key, entry, call, machine) {
            return outcome;
        }
        call.session.caller().give_back(payment, count);
    }
    Action::Take(count).defer(key)
}

/// Takes from memory; `None` if the store is needed.
#[inline]
fn take<S: Store>(
    count: u64,
    key: &str,
    entry: &SeriesEntry,
    call: &mut Call<'_>,
    machine: &Machine<S>,
) -> Option<Outcome> {
    let taken = machine.try_next_by_key(entry, key, count, &mut call.session.scope_buffer)?;
    answer(&mut call.reply(), &taken);
    Some(Outcome::Answered)
}

pub(super) fn answer(reply: &mut Reply<'_>, taken: &TakenPositions) {
    reply.unsigned(taken.last());
}
