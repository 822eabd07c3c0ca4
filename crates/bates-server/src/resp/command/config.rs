//! `CONFIG GET name …`: the settings that tools ask for. Names may be patterns that end in a star.

use super::Call;

/// For `redis-benchmark`, monitoring and StackExchange.Redis. As with `appendonly`, a commit is on disk before the answer.
const CONFIGURATION: [(&str, &str); 6] = [
    ("save", ""),
    ("appendonly", "yes"),
    ("databases", "1"),
    // A client that is silent is not closed for it.
    ("timeout", "0"),
    // There are no replicas; these are the defaults of Redis.
    ("replica-read-only", "yes"),
    ("slave-read-only", "yes"),
];

pub(super) fn run(call: &mut Call<'_>) {
    let command = call.command;
    let mut reply = call.reply();
    if !command.arg(1).is_some_and(|what| what.eq_ignore_ascii_case(b"GET")) || command.arg_count() < 3 {
        return reply
            .error("ERR", "only CONFIG GET <name> is supported: a server is configured when it starts");
    }
    let is_match = |name: &str, pattern: &[u8]| match pattern.strip_suffix(b"*") {
        Some(start) => name.as_bytes().get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start)),
        None => pattern.eq_ignore_ascii_case(name.as_bytes()),
    };
    let is_requested = |name: &str| command.args().skip(2).any(|pattern| is_match(name, pattern));
    let found: Vec<_> = CONFIGURATION.into_iter().filter(|(name, _)| is_requested(name)).collect();
    reply.map(found.len());
    reply.pairs(found);
}
