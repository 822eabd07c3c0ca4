//! `ECHO`: answers with its argument.

use bates_core::Store;

use super::Call;

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) {
    let text = call.command.arg(1).unwrap_or_default();
    call.reply().bulk(text);
}
