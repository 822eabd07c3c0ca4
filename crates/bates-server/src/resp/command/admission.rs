//! `AUTH`, `HELLO`, `RESET`: who a client is, and what it speaks. Owns the words of a refusal; whether a secret is
//! right is not decided here.

use super::super::session::{Session, Verdict};
use super::client::{NAME_RULE, is_name};
use super::{Command, Done, Reply, wrong_arguments};
use crate::resp::Protocol;

/// Redis calls the user that needs no name so. A token has a name, and need not say it.
const USER: &[u8] = b"default";

/// `AUTH secret`, `AUTH default secret` or, for a token, `AUTH name secret`.
pub(super) fn auth(command: Command<'_>, session: &mut Session, output: &mut Vec<u8>) -> Done {
    let (user, secret) = match (command.arg(1), command.arg(2), command.arg_count()) {
        (Some(secret), None, _) => (USER, secret),
        (Some(user), Some(secret), 3) => (user, secret),
        _ => {
            wrong_arguments(command, session, output);
            return Done::Answered;
        }
    };
    if let Err(done) = admit(user, secret, session, output) {
        return done;
    }
    Reply::new(output, session.protocol).simple("OK");
    Done::Limited
}

const AUTH_RULE: (&str, &str) = ("ERR", "syntax error in HELLO: AUTH needs a user and a secret");

/// What follows the version in `HELLO`.
#[derive(Default)]
struct Options<'c> {
    protocol: Option<Protocol>,
    credentials: Option<(&'c [u8], &'c [u8])>,
    name: Option<&'c [u8]>,
}

/// `HELLO [2|3 [AUTH user secret] [SETNAME name]]`. Nothing changes unless all of it is good.
pub(super) fn hello(command: Command<'_>, session: &mut Session, output: &mut Vec<u8>) -> Done {
    let options = match read(command) {
        Ok(options) => options,
        Err((prefix, sentence)) => {
            Reply::new(output, session.protocol).error(prefix, sentence);
            return Done::Answered;
        }
    };
    if let Some((user, secret)) = options.credentials
        && let Err(done) = admit(user, secret, session, output)
    {
        return done;
    }
    if !session.is_admitted() {
        Reply::new(output, session.protocol).error(
            "NOAUTH",
            "HELLO must be called with the client already authenticated, or as HELLO <proto> AUTH default <secret>",
        );
        return Done::Answered;
    }
    if let Some(name) = options.name {
        session.seat.note(|said| said.name = String::from_utf8_lossy(name).into());
    }
    if let Some(protocol) = options.protocol {
        session.speak(protocol);
    }
    introduce(session, output);
    Done::Limited
}

fn read(command: Command<'_>) -> Result<Options<'_>, (&'static str, &'static str)> {
    let mut options = Options::default();
    let mut args = command.args().skip(1);
    options.protocol = match args.next() {
        None => return Ok(options),
        Some(b"2") => Some(Protocol::Resp2),
        Some(b"3") => Some(Protocol::Resp3),
        Some(_) => return Err(("NOPROTO", "unsupported protocol version")),
    };
    while let Some(option) = args.next() {
        match option.to_ascii_uppercase().as_slice() {
            b"AUTH" => options.credentials = Some(args.next().zip(args.next()).ok_or(AUTH_RULE)?),
            b"SETNAME" => {
                options.name = Some(args.next().filter(|name| is_name(name)).ok_or(("ERR", NAME_RULE))?);
            }
            _ => return Err(("ERR", "syntax error in HELLO: only AUTH and SETNAME may follow")),
        }
    }
    Ok(options)
}

/// Who we are.
fn introduce(session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    reply.map(7);
    for (name, value) in [
        ("server", "bates"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("mode", "standalone"),
        ("role", "master"),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(session.protocol.version().into());
    reply.bulk(b"id");
    reply.integer(i64::try_from(session.seat.id()).unwrap_or(i64::MAX));
    reply.bulk(b"modules");
    reply.array(0);
}

/// As it was at first, which for a server with a secret means unknown again.
pub(super) fn reset(session: &mut Session, output: &mut Vec<u8>) -> Done {
    session.reset();
    Reply::new(output, session.protocol).simple("RESET");
    Done::Limited
}

/// Shows the secret; what was wrong with it is answered.
fn admit(user: &[u8], secret: &[u8], session: &mut Session, output: &mut Vec<u8>) -> Result<(), Done> {
    if session.front.settings.access.is_open() {
        let sentence = "AUTH called without any password configured: this server has no secret";
        Reply::new(output, session.protocol).error("ERR", sentence);
        return Err(Done::Answered);
    }
    let verdict = session.show_secret(user, secret);
    if verdict == Verdict::Admitted {
        return Ok(());
    }
    Reply::new(output, session.protocol)
        .error("WRONGPASS", "invalid username-password pair or user is disabled.");
    Err(if verdict == Verdict::WrongTooOften { Done::Quit } else { Done::Answered })
}
