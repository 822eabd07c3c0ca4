//! `AUTH`: shows the secret. Owns the words of a refusal; whether a secret is right is not decided here.

use super::{Call, Outcome};

/// Redis calls the user that needs no name so. A token has a name, and need not say it.
const USER: &[u8] = b"default";

/// `AUTH secret`, `AUTH default secret` or, for a token, `AUTH name secret`.
pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    let (user, secret) = match (call.command.arg(1), call.command.arg(2), call.command.arg_count()) {
        (Some(secret), None, _) => (USER, secret),
        (Some(user), Some(secret), 3) => (user, secret),
        _ => return call.wrong_arguments(),
    };
    if let Err(outcome) = admit(user, secret, call) {
        return outcome;
    }
    call.reply().simple("OK");
    Outcome::Limited
}

pub(super) fn admit(user: &[u8], secret: &[u8], call: &mut Call<'_>) -> Result<(), Outcome> {
    if call.session.front.settings.access.is_open() {
        let sentence = "AUTH called without any password configured: this server has no secret";
        return Err(call.fail("ERR", sentence));
    }
    if call.session.show_secret(user, secret) {
        return Ok(());
    }
    let answered = call.fail("WRONGPASS", "invalid username-password pair or user is disabled.");
    Err(if call.session.was_wrong_too_often() { Outcome::Quit } else { answered })
}
