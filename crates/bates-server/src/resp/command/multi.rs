//! `MULTI`, `EXEC`, `DISCARD`, `WATCH` and `UNWATCH`: commands that are executed one after the other. Commands of other
//! callers may run in between.

use bates_core::{Machine, Store};

use super::table::{Handler, Spec};
use super::target::Target;
use super::{Call, Outcome, printable, unknown};

pub(super) fn begin(call: &mut Call<'_>) -> Outcome {
    if call.session.transaction.is_some() {
        return call.fail("ERR", "MULTI calls can not be nested");
    }
    call.session.transaction = Some(Box::default());
    call.reply().simple("OK");
    Outcome::Answered
}

pub(super) fn exec(call: &mut Call<'_>) -> Outcome {
    let Some(transaction) = call.session.transaction.take() else {
        return call.fail("ERR", "EXEC without MULTI");
    };
    match transaction.into_queue() {
        Some(queue) => Outcome::Queue(queue),
        None => call.fail("EXECABORT", "Transaction discarded because of previous errors."),
    }
}

pub(super) fn discard(call: &mut Call<'_>) -> Outcome {
    if call.session.transaction.take().is_none() {
        return call.fail("ERR", "DISCARD without MULTI");
    }
    call.reply().simple("OK");
    Outcome::Answered
}

/// Refused: `EXEC` would have to tell whether another caller took a number of the key.
pub(super) fn watch(call: &mut Call<'_>) -> Outcome {
    let sentence = if call.session.transaction.is_some() {
        "WATCH inside MULTI is not allowed"
    } else {
        "WATCH is not supported: EXEC cannot depend on the numbers that other callers take"
    };
    call.fail("ERR", sentence)
}

pub(super) fn unwatch(call: &mut Call<'_>) {
    call.reply().simple("OK");
}

/// Checks a command after `MULTI` and queues it, or runs one that has its place there.
pub(super) fn enqueue<S: Store>(
    spec: Option<&Spec>,
    name: &[u8],
    call: &mut Call<'_>,
    machine: &Machine<S>,
) -> Outcome {
    let Some(spec) = spec else {
        call.refuse_transaction();
        return unknown::run(name, call);
    };
    if !spec.takes(call.command.arg_count()) {
        return refuse_arguments(spec, call);
    }
    match spec.handler {
        Handler::Control(run) => return run(call),
        Handler::Outside(_) => {
            call.refuse_transaction();
            let typed = printable(call.command.name());
            return call.fail("ERR", format_args!("{typed} is not allowed inside MULTI: send it before"));
        }
        _ => {}
    }
    if !may_run(spec, call, machine) {
        call.refuse_transaction();
        return Outcome::Answered;
    }
    let pushed = call.session.transaction.as_mut().map_or(Ok(()), |it| it.push(call.command));
    match pushed {
        Ok(()) => call.reply().simple("QUEUED"),
        Err(full) => return call.fail("ERR", full),
    }
    Outcome::Answered
}

fn refuse_arguments(spec: &Spec, call: &mut Call<'_>) -> Outcome {
    if spec.name != "exec" {
        call.refuse_transaction();
        return call.wrong_arguments();
    }
    call.session.transaction = None;
    let reason = "wrong number of arguments for 'exec' command";
    call.fail("EXECABORT", format_args!("Transaction discarded because of: {reason}"))
}

/// Whether the caller has the right that the command needs, as far as this node knows the series. If not, the refusal is
/// answered. The command checks again when it is executed.
fn may_run<S: Store>(spec: &Spec, call: &mut Call<'_>, machine: &Machine<S>) -> bool {
    let Some(right) = spec.class.right.filter(|_| !call.session.caller().takes_freely()) else { return true };
    let name = call.command.arg(1).unwrap_or_default();
    // Of many keys, those that the caller may not read are answered with nil.
    if spec.last_key < 0 {
        return true;
    }
    let target = if spec.last_key == 1 {
        let Ok(key) = std::str::from_utf8(name) else { return true };
        Target::Key(key.into())
    } else {
        // The parameters, and so the scope, are checked when it is executed.
        Target::Series { name: name.into(), parameters: Vec::new(), date: None, is_whole: true }
    };
    let Some(entry) = target.known(machine) else { return true };
    let Err(denial) = target.check(call.session, right, &entry) else { return true };
    target.deny(&mut call.reply(), &denial);
    false
}

impl Call<'_> {
    /// `EXEC` will execute nothing.
    fn refuse_transaction(&mut self) {
        if let Some(transaction) = &mut self.session.transaction {
            transaction.refuse();
        }
    }
}
