//! `INFO [section …]` and `CONFIG GET name …`: what tools ask of the server.

use super::super::session::Session;
use super::Call;

/// The Redis whose commands ours are like: tools choose by it how they ask.
const REDIS_VERSION: &str = "7.0.0";
/// What `redis-benchmark` and monitoring ask for. `appendonly`: every answer is on disk before it is given.
const CONFIGURATION: [(&str, &str); 3] = [("save", ""), ("appendonly", "yes"), ("databases", "1")];

/// Without a section, all of them. An unknown section is empty.
pub(super) fn run(call: &mut Call<'_>, series_count: usize) {
    let command = call.command;
    let is_asked = |section: &str| {
        let names = [section, "all", "default", "everything"];
        let is_one = |asked: &[u8]| names.iter().any(|name| asked.eq_ignore_ascii_case(name.as_bytes()));
        command.arg_count() == 1 || command.args().skip(1).any(is_one)
    };
    let sections = sections(call.session, series_count).into_iter();
    let asked = sections.filter(|(section, _)| is_asked(section));
    let texts: Vec<String> = asked.map(|(section, lines)| format!("# {section}\r\n{lines}")).collect();
    call.reply().verbatim(&texts.join("\r\n"));
}

fn sections(session: &Session, series_count: usize) -> [(&'static str, String); 5] {
    let front = &session.front;
    let (version, process) = (env!("CARGO_PKG_VERSION"), std::process::id());
    let (uptime, clients) = (front.opened.elapsed().as_secs(), front.clients.count());
    let server = format!(
        "server_name:bates\r\nbates_version:{version}\r\nredis_version:{REDIS_VERSION}\r\n\
         redis_mode:standalone\r\nprocess_id:{process}\r\nuptime_in_seconds:{uptime}\r\n"
    );
    [
        ("Server", server),
        ("Clients", format!("connected_clients:{clients}\r\n")),
        // Clients wait with their first command while a Redis loads.
        ("Persistence", "loading:0\r\naof_enabled:1\r\n".to_owned()),
        ("Replication", "role:master\r\nconnected_slaves:0\r\n".to_owned()),
        ("Series", format!("series:{series_count}\r\n")),
    ]
}

/// Names may be patterns with a star at their end.
pub(super) fn config(call: &mut Call<'_>) {
    let command = call.command;
    let mut reply = call.reply();
    if !command.arg(1).is_some_and(|what| what.eq_ignore_ascii_case(b"GET")) || command.arg_count() < 3 {
        return reply.error("ERR", "only CONFIG GET <name> is known: a server is configured when it starts");
    }
    let is_asked = |name: &str| {
        command.args().skip(2).any(|asked| match asked.strip_suffix(b"*") {
            Some(start) => {
                name.as_bytes().get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start))
            }
            None => asked.eq_ignore_ascii_case(name.as_bytes()),
        })
    };
    let found: Vec<_> = CONFIGURATION.into_iter().filter(|(name, _)| is_asked(name)).collect();
    reply.map(found.len());
    reply.pairs(found);
}
