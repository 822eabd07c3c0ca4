//! `HELLO [2|3 [AUTH user secret] [SETNAME name]]`: authenticates, names the client, and sets the protocol.

use super::auth::authenticate;
use super::client::{NAME_RULE, is_name};
use super::info::REDIS_VERSION;
use super::{Call, Command, Outcome};
use crate::resp::Protocol;

const NOAUTH_RULE: &str =
    "HELLO must be called with the client already authenticated, or as HELLO <proto> AUTH default <secret>";

const AUTH_RULE: (&str, &str) = ("ERR", "syntax error in HELLO: AUTH needs a user and a secret");

#[derive(Default)]
struct Options<'c> {
    protocol: Option<Protocol>,
    credentials: Option<(&'c [u8], &'c [u8])>,
    name: Option<&'c [u8]>,
}

/// Changes nothing unless every option is valid.
pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    let options = match read(call.command) {
        Ok(options) => options,
        Err((prefix, sentence)) => return call.fail(prefix, sentence),
    };
    if let Some((user, secret)) = options.credentials
        && let Err(outcome) = authenticate(user, secret, call)
    {
        return outcome;
    }
    if !call.session.is_authenticated() {
        return call.fail("NOAUTH", NOAUTH_RULE);
    }
    if let Some(name) = options.name {
        call.session.client.update(|info| info.name = String::from_utf8_lossy(name).into());
    }
    if let Some(protocol) = options.protocol {
        call.session.set_protocol(protocol);
    }
    write_properties(call);
    Outcome::LimitsChanged
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

fn write_properties(call: &mut Call<'_>) {
    let (version, id) = (call.session.protocol.version(), call.session.client.id);
    let mut reply = call.reply();
    reply.map(7);
    reply.pairs([("server", "bates"), ("version", REDIS_VERSION)]);
    reply.pairs([("mode", "standalone"), ("role", "master")]);
    reply.bulk(b"proto");
    reply.integer(version.into());
    reply.bulk(b"id");
    reply.unsigned(id);
    reply.bulk(b"modules");
    reply.array(0);
}
