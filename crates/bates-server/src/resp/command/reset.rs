//! `RESET`: makes the connection as it was at first, which for a server with a secret means unknown again.

use super::{Call, Outcome};

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    call.session.reset();
    call.reply().simple("RESET");
    Outcome::Limited
}
