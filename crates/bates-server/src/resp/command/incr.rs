//! `INCR` and `INCRBY`: the next number of a scope, or the last of several, as an integer.
//! Invariant: a number that is held in memory is answered without an allocation.

use bates_core::{Machine, Store};

use super::request::not_a_count;
use super::{Action, Call, Outcome};

const COUNT_MAX: u64 = 1_000_000;

pub(super) fn run_by<S: Store>(call: &mut Call<'_>, machine: &Machine<S>) -> Outcome {
    call.count(2, 1, COUNT_MAX).map_or(Outcome::Answered, |count| run(count, call, machine))
}

pub(super) fn run<S: Store>(count: u64, call: &mut Call<'_>, machine: &Machine<S>) -> Outcome {
    let Some(key) = call.key() else { return Outcome::Answered };
    let Some(entry) = machine.of_key(key) else { return Action::Take(count).later(key) };
    if !entry.counts_plainly() {
        not_a_count(&mut call.reply(), &entry);
        return Outcome::Answered;
    }
    match machine.try_next_by_key(&entry, key, count, &mut call.session.scope) {
        Some(taken) => {
            call.reply().count(taken.last());
            Outcome::Answered
        }
        None => Action::Take(count).later(key),
    }
}
