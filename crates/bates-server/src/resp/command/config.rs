//! `CONFIG GET name …`: what tools ask of the configuration. Names may be patterns with a star at their end.

use super::Call;

/// What `redis-benchmark` and monitoring ask for. Every answer is on disk before it is given, as with
/// `appendonly`.
const CONFIGURATION: [(&str, &str); 3] = [("save", ""), ("appendonly", "yes"), ("databases", "1")];

pub(super) fn run(call: &mut Call<'_>) {
    let command = call.command;
    let mut reply = call.reply();
    if !command.arg(1).is_some_and(|what| what.eq_ignore_ascii_case(b"GET")) || command.arg_count() < 3 {
        return reply.error("ERR", "only CONFIG GET <name> is known: a server is configured when it starts");
    }
    let is_asked = |name: &str| {
        command.args().skip(2).any(|asked| match asked.strip_suffix(b"*") {
            Some(start) => {
                name.len() >= start.len() && name.as_bytes()[..start.len()].eq_ignore_ascii_case(start)
            }
            None => asked.eq_ignore_ascii_case(name.as_bytes()),
        })
    };
    let found: Vec<_> = CONFIGURATION.into_iter().filter(|(name, _)| is_asked(name)).collect();
    reply.map(found.len());
    reply.pairs(found);
}
