//! `SELECT`: selects the database; there is only 0.

use super::Call;

pub(super) fn run(call: &mut Call<'_>) {
    match call.command.arg(1) {
        Some(b"0") => call.reply().simple("OK"),
        _ => call.reply().error("ERR", "DB index is out of range: the only database is 0"),
    }
}
