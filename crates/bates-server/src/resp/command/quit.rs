//! `QUIT`: ends the connection.

use super::{Call, Outcome};

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    call.reply().simple("OK");
    Outcome::Quit
}
