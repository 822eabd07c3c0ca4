//! `RESET`: makes the connection as it was at first, which for a server with a secret means unknown again.

use bates_core::Store;

use super::{Call, Outcome};

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) -> Outcome {
    call.session.reset();
    call.reply().simple("RESET");
    Outcome::Limited
}
