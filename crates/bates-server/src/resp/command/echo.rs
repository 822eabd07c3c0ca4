//! `ECHO`: answers with its argument.

use super::Call;

pub(super) fn run(call: &mut Call<'_>) {
    let text = call.command.arg(1).unwrap_or_default();
    call.reply().bulk(text);
}
