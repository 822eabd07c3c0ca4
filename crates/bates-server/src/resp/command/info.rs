//! `INFO [section …]`: how the server is.

use std::fmt::Write as _;

use super::super::session::Session;
use super::Call;

/// The Redis whose commands ours are like: tools choose by it how they ask.
const REDIS_VERSION: &str = "7.0.0";

/// Without a section, all of them. An unknown section is empty.
pub(super) fn run(call: &mut Call<'_>, series_count: usize) {
    let command = call.command;
    let is_asked = |section: &str| {
        command.arg_count() == 1
            || command.args().skip(1).any(|asked| {
                [section, "all", "default", "everything"]
                    .iter()
                    .any(|name| asked.eq_ignore_ascii_case(name.as_bytes()))
            })
    };
    let mut text = String::new();
    for (section, lines) in sections(call.session, series_count) {
        if is_asked(section) {
            let between = if text.is_empty() { "" } else { "\r\n" };
            write!(text, "{between}# {section}\r\n").expect("a String takes all that is written to it");
            for (name, value) in lines {
                write!(text, "{name}:{value}\r\n").expect("a String takes all that is written to it");
            }
        }
    }
    call.reply().verbatim(&text);
}

type Section = (&'static str, Vec<(&'static str, String)>);

fn sections(session: &Session, series_count: usize) -> [Section; 5] {
    let front = &session.front;
    let server = vec![
        ("server_name", "bates".to_owned()),
        ("bates_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("redis_version", REDIS_VERSION.to_owned()),
        ("redis_mode", "standalone".to_owned()),
        ("process_id", std::process::id().to_string()),
        ("uptime_in_seconds", front.opened.elapsed().as_secs().to_string()),
    ];
    [
        ("Server", server),
        ("Clients", vec![("connected_clients", front.clients.count().to_string())]),
        // Clients wait with their first command while a Redis loads.
        ("Persistence", vec![("loading", "0".to_owned()), ("aof_enabled", "1".to_owned())]),
        ("Replication", vec![("role", "master".to_owned()), ("connected_slaves", "0".to_owned())]),
        ("Series", vec![("series", series_count.to_string())]),
    ]
}
