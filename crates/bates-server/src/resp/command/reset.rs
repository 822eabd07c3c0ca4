//! `RESET`: returns the connection to its first state: with a secret, not authenticated.

use super::{Call, Outcome};

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    call.session.reset();
    call.reply().simple("RESET");
    Outcome::LimitsChanged
}
