//! `PING`: answers PONG, or with its argument.

use bates_core::Store;

use super::Call;

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) {
    match (call.command.arg(1), call.command.arg_count()) {
        (None, _) => call.reply().simple("PONG"),
        (Some(text), 2) => call.reply().bulk(text),
        _ => call.wrong_arguments(),
    }
}
