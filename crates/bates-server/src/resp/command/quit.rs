//! `QUIT`: ends the connection.

use bates_core::Store;

use super::{Call, Outcome};

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) -> Outcome {
    call.reply().simple("OK");
    Outcome::Quit
}
