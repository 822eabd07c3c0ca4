//! Takes numbers from memory, for commands that then answer at once. Callers whose rights or numbers are limited are checked
//! here; the others pass with one look.

use bates_core::{Machine, Right, SeriesEntry, Store};

use super::request::deny_key;
use super::{Call, Outcome};

/// Checks the caller's right to the scope of a key. An error is answered.
#[inline]
pub(super) fn check(
    right: Option<Right>,
    key: &str,
    entry: &SeriesEntry,
    call: &mut Call<'_>,
) -> Result<(), Outcome> {
    if call.session.caller().takes_freely() { Ok(()) } else { check_limited(right, key, entry, call) }
}

#[inline(never)]
fn check_limited(
    right: Option<Right>,
    key: &str,
    entry: &SeriesEntry,
    call: &mut Call<'_>,
) -> Result<(), Outcome> {
    if let Some(right) = right
        && let Err(denial) = call.session.check_key(right, entry, key)
    {
        deny_key(&mut call.reply(), key, &denial);
        return Err(Outcome::Answered);
    }
    Ok(())
}

/// Takes `count` numbers within the rate and quota of the caller. `None` if the store is needed.
#[inline]
pub(super) fn take<S: Store>(
    count: u64,
    call: &mut Call<'_>,
    machine: &Machine<S>,
    take: impl FnOnce(&mut Call<'_>) -> Option<()>,
) -> Option<()> {
    if call.session.caller().takes_freely() { take(call) } else { take_limited(count, call, machine, take) }
}

#[inline(never)]
fn take_limited<S: Store>(
    count: u64,
    call: &mut Call<'_>,
    machine: &Machine<S>,
    take: impl FnOnce(&mut Call<'_>) -> Option<()>,
) -> Option<()> {
    let payment = call.session.caller().try_take_allowance(machine, count)?;
    let taken = take(call);
    if taken.is_none() {
        call.session.caller().give_back(payment, count);
    }
    taken
}
