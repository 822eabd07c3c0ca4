//! `AUTH`: shows the secret. Owns the words of a refusal; whether a secret is right is not decided here.

use bates_core::Store;

use super::super::session::Verdict;
use super::{Call, Outcome};

/// Redis calls the user that needs no name so. A token has a name, and need not say it.
const USER: &[u8] = b"default";

/// `AUTH secret`, `AUTH default secret` or, for a token, `AUTH name secret`.
pub(super) fn run<S: Store>(call: &mut Call<'_, S>) -> Outcome {
    let (user, secret) = match (call.command.arg(1), call.command.arg(2), call.command.arg_count()) {
        (Some(secret), None, _) => (USER, secret),
        (Some(user), Some(secret), 3) => (user, secret),
        _ => {
            call.wrong_arguments();
            return Outcome::Answered;
        }
    };
    if let Err(outcome) = admit(user, secret, call) {
        return outcome;
    }
    call.reply().simple("OK");
    Outcome::Limited
}

/// Shows the secret; what was wrong with it is answered.
pub(super) fn admit<S: Store>(user: &[u8], secret: &[u8], call: &mut Call<'_, S>) -> Result<(), Outcome> {
    if call.session.front.settings.access.is_open() {
        let sentence = "AUTH called without any password configured: this server has no secret";
        call.reply().error("ERR", sentence);
        return Err(Outcome::Answered);
    }
    let verdict = call.session.show_secret(user, secret);
    if verdict == Verdict::Admitted {
        return Ok(());
    }
    call.reply().error("WRONGPASS", "invalid username-password pair or user is disabled.");
    Err(if verdict == Verdict::WrongTooOften { Outcome::Quit } else { Outcome::Answered })
}
