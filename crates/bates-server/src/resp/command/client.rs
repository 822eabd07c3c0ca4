//! `CLIENT`: the connected clients and their names.

use bates_core::Right;

use super::super::session::Session;
use super::{Call, Command, Reply, printable};

/// Max length of a name: the server stores and lists it.
/// StackExchange.Redis appends its version to the name of the host, which has up to 63 characters.
const TEXT_BYTES_MAX: usize = 128;

pub(super) const NAME_RULE: &str =
    "Client names cannot contain spaces, newlines or special characters: up to 128 visible ones";

pub(super) fn run(call: &mut Call<'_>) {
    let (command, session) = (call.command, &*call.session);
    let subcommand = command.arg(1).unwrap_or_default().to_ascii_uppercase();
    let mut reply = Reply::new(call.output, session.protocol);
    match (subcommand.as_slice(), command.arg_count()) {
        (b"ID", 2) => reply.unsigned(session.client.id),
        (b"GETNAME", 2) => match session.client.info().name.as_str() {
            "" => reply.null(),
            name => reply.bulk(name.as_bytes()),
        },
        (b"SETNAME", 3) => set_name(command, session, &mut reply),
        (b"SETINFO", 4) => set_info(command, session, &mut reply),
        (b"INFO", 2) => reply.verbatim(&session.shared.clients.lines(|id| id == session.client.id)),
        (b"LIST", _) => list(command, session, &mut reply),
        // The server evicts no client and no key, so both states are the same.
        (b"NO-EVICT" | b"NO-TOUCH", 3) => match command.arg(2).map(<[u8]>::to_ascii_uppercase).as_deref() {
            Some(b"ON" | b"OFF") => reply.simple("OK"),
            _ => reply.error("ERR", "syntax error: ON or OFF"),
        },
        // The server never tracks.
        (b"TRACKING", 3..) if command.arg(2).is_some_and(|it| it.eq_ignore_ascii_case(b"OFF")) => {
            reply.simple("OK");
        }
        (b"TRACKING", 3..) => {
            reply.error("ERR", "CLIENT TRACKING is not supported: a counter changes with every number");
        }
        (b"REPLY", _) => reply.error("ERR", "CLIENT REPLY is not supported: every command is answered"),
        (b"ID" | b"GETNAME" | b"SETNAME" | b"SETINFO" | b"INFO" | b"NO-EVICT" | b"NO-TOUCH", _) => {
            let subcommand = printable(&subcommand).to_lowercase();
            reply.error("ERR", format_args!("wrong number of arguments for 'client|{subcommand}' command"));
        }
        _ => reply.error("ERR", format_args!("unknown subcommand '{}' of CLIENT", printable(&subcommand))),
    }
}

/// No spaces: a name is one word in the lines of `CLIENT LIST`.
pub(super) fn is_name(name: &[u8]) -> bool {
    name.len() <= TEXT_BYTES_MAX && name.iter().all(u8::is_ascii_graphic)
}

fn set_name(command: Command<'_>, session: &Session, reply: &mut Reply<'_>) {
    match command.arg(2) {
        Some(name) if is_name(name) => {
            session.client.update(|info| info.name = String::from_utf8_lossy(name).into());
            reply.simple("OK");
        }
        _ => reply.error("ERR", NAME_RULE),
    }
}

fn set_info(command: Command<'_>, session: &Session, reply: &mut Reply<'_>) {
    let option = command.arg(2).unwrap_or_default().to_ascii_uppercase();
    let Some(text) = command.arg(3).filter(|text| is_name(text)) else {
        let option = printable(&option);
        return reply.error("ERR", format_args!("{option} is up to 128 visible characters without spaces"));
    };
    let text = String::from_utf8_lossy(text).into();
    match option.as_slice() {
        b"LIB-NAME" => session.client.update(|info| info.library = text),
        b"LIB-VER" => session.client.update(|info| info.library_version = text),
        _ => return reply.error("ERR", format_args!("Unrecognized option '{}'", printable(&option))),
    }
    reply.simple("OK");
}

/// `CLIENT LIST [TYPE normal] [ID id …]`.
fn list(command: Command<'_>, session: &Session, reply: &mut Reply<'_>) {
    let clients = &session.shared.clients;
    // The addresses of other callers are for operators of the whole server.
    let permissions = session.caller().permissions();
    let sees_all = permissions.has(Right::Operate) && permissions.is_unlimited();
    let sees = |id: u64| sees_all || id == session.client.id;
    match command.arg(2).map(<[u8]>::to_ascii_uppercase).as_deref() {
        None => reply.verbatim(&clients.lines(sees)),
        Some(b"TYPE") if command.arg_count() == 4 => {
            // This server has no clients of the other types: replica, master, pubsub.
            let is_normal = command.arg(3).is_some_and(|kind| kind.eq_ignore_ascii_case(b"normal"));
            reply.verbatim(&clients.lines(|id| is_normal && sees(id)));
        }
        Some(b"ID") if command.arg_count() > 3 => {
            let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
            match command.args().skip(3).map(number).collect::<Option<Vec<u64>>>() {
                Some(ids) => reply.verbatim(&clients.lines(|id| ids.contains(&id) && sees(id))),
                None => reply.error("ERR", "Invalid client ID"),
            }
        }
        Some(_) => reply.error("ERR", "syntax error: CLIENT LIST [TYPE type] [ID id ...]"),
    }
}
