//! `BATES.NEXT series [COUNT n] [DATE day] [name value …]`: the next numbers of a scope.

use bates_core::{Machine, Store};

use super::{Action, Call, Outcome, lpop};

pub(super) fn run<S: Store>(call: &mut Call<'_>, machine: &Machine<S>) -> Outcome {
    // The parameters of a caller with limited rights are checked first, by the request.
    let is_free = call.session.caller().takes_freely();
    match if is_free { answer_from_memory(call, machine) } else { None } {
        Some(()) => Outcome::Answered,
        None => Action::Pop(None).defer_by_series(call),
    }
}

/// One number of the scope with these parameters. `None` if the store is needed, or if there is more to read.
fn answer_from_memory<S: Store>(call: &mut Call<'_>, machine: &Machine<S>) -> Option<()> {
    let command = call.command;
    let text = |at: usize| std::str::from_utf8(command.arg(at)?).ok();
    let names = (2..command.arg_count()).step_by(2);
    let value_of = |name: &str| text(names.clone().find(|at| text(*at) == Some(name))? + 1);
    let is_option = |name: &[u8]| name.eq_ignore_ascii_case(b"count") || name.eq_ignore_ascii_case(b"date");
    if !command.arg_count().is_multiple_of(2) || names.clone().filter_map(|at| command.arg(at)).any(is_option)
    {
        return None;
    }
    let entry = machine.series(text(1)?)?;
    let is_scope = entry.write_scope(names.len(), value_of, &mut call.session.scope_buffer);
    if is_scope { lpop::pop(None, &entry, call, machine) } else { None }
}
