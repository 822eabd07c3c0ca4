//! `INFO [section …]`: the state of the server.

use super::super::session::Session;
use super::Call;

/// The Redis version that Bates resembles: clients choose their commands by it.
pub(super) const REDIS_VERSION: &str = "7.0.0";

/// Without a section, all of them. An unknown section is empty.
pub(super) fn run(call: &mut Call<'_>, series_count: usize) {
    let command = call.command;
    let is_requested = |section: &str| {
        let names = [section, "all", "default", "everything"];
        let is_match = |arg: &[u8]| names.iter().any(|name| arg.eq_ignore_ascii_case(name.as_bytes()));
        command.arg_count() == 1 || command.args().skip(1).any(is_match)
    };
    let sections = sections(call.session, series_count).into_iter();
    let requested = sections.filter(|(section, _)| is_requested(section));
    let texts: Vec<String> = requested.map(|(section, lines)| format!("# {section}\r\n{lines}")).collect();
    call.reply().verbatim(&texts.join("\r\n"));
}

fn sections(session: &Session, series_count: usize) -> [(&'static str, String); 5] {
    let shared = &session.shared;
    let (version, process) = (env!("CARGO_PKG_VERSION"), std::process::id());
    let (uptime, clients) = (shared.started.elapsed().as_secs(), shared.clients.count());
    let server = format!(
        "server_name:bates\r\nbates_version:{version}\r\nredis_version:{REDIS_VERSION}\r\n\
         redis_mode:standalone\r\nprocess_id:{process}\r\nuptime_in_seconds:{uptime}\r\n"
    );
    [
        ("Server", server),
        ("Clients", format!("connected_clients:{clients}\r\n")),
        // Clients wait with their first command until `loading` is 0.
        ("Persistence", "loading:0\r\naof_enabled:1\r\n".to_owned()),
        ("Replication", "role:master\r\nconnected_slaves:0\r\n".to_owned()),
        ("Series", format!("series:{series_count}\r\n")),
    ]
}
