//! `INCRBY`: the next numbers of a scope; answers with the last of them.

use bates_core::{Machine, Right, Store};

use super::{Call, Outcome, incr};

const COUNT_MAX: u64 = 1_000_000;

pub(super) fn run<S: Store>(right: Option<Right>, call: &mut Call<'_>, machine: &Machine<S>) -> Outcome {
    call.count(2, 1, COUNT_MAX).map_or(Outcome::Answered, |count| incr::run(count, right, call, machine))
}
