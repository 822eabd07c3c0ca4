//! `AUTH`: authenticates a connection. `access.rs` decides whether a secret is right.

use super::{Call, Outcome};
use crate::defense::SecretRefusal;

/// The user of a client that sends only a secret, as in Redis. A token may use it instead of its own name.
const DEFAULT_USER: &[u8] = b"default";

/// `AUTH secret`, `AUTH default secret` or, for a token, `AUTH name secret`.
pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    let (user, secret) = match (call.command.arg(1), call.command.arg(2), call.command.arg_count()) {
        (Some(secret), None, _) => (DEFAULT_USER, secret),
        (Some(user), Some(secret), 3) => (user, secret),
        _ => return call.wrong_arguments(),
    };
    if let Err(outcome) = authenticate(user, secret, call) {
        return outcome;
    }
    call.reply().simple("OK");
    Outcome::LimitsChanged
}

pub(super) fn authenticate(user: &[u8], secret: &[u8], call: &mut Call<'_>) -> Result<(), Outcome> {
    if call.session.shared.settings.access.is_open() {
        return Err(call.fail("ERR", "AUTH called without any password configured: no secret is set"));
    }
    let outcome = match call.session.authenticate(user, secret) {
        Ok(()) => return Ok(()),
        Err(SecretRefusal::Wrong) => {
            call.fail("WRONGPASS", "invalid username-password pair or user is disabled.")
        }
        Err(SecretRefusal::Unchecked(wait)) => {
            let sentence = "too many wrong secrets came from this address; this one was not checked";
            return Err(call.refuse_for_rate(sentence, wait));
        }
    };
    Err(if call.session.has_too_many_wrong_secrets() { Outcome::Quit } else { outcome })
}
