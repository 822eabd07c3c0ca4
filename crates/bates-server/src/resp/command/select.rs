//! `SELECT`: chooses the database; there is one, 0.

use bates_core::Store;

use super::Call;

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) {
    match call.command.arg(1) {
        Some(b"0") => call.reply().simple("OK"),
        _ => call.reply().error("ERR", "DB index is out of range: there is one, 0"),
    }
}
