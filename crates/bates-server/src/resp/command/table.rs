//! The table of commands: what each is called, how many arguments it takes and whether it has a key. Dispatch,
//! the check of arguments, the check of who may call, and all that `COMMAND` answers come from here.

use bates_core::{Peek, SeriesEntry};

use super::{
    Call, Outcome, Reply, auth, client, commands, config, echo, exists, get, hello, llen, next, peek, ping,
    quit, reset, select, r#type, validate,
};
use Run::{Ask, Greet, Incr, IncrBy, Info, Look, Pop, Say, Time};

pub(super) struct Spec {
    pub(super) run: Run,
    /// In lower case, as Redis names commands.
    pub(super) name: &'static str,
    /// How many arguments, the name among them; negative for a minimum.
    pub(super) arity: i8,
    /// Whether the first argument is a key; no other one is.
    pub(super) has_key: bool,
    /// In the words of Redis.
    pub(super) flags: &'static [&'static str],
    pub(super) group: &'static str,
    pub(super) summary: &'static str,
}

/// What runs it.
#[derive(Clone, Copy)]
pub(super) enum Run {
    Incr,
    IncrBy,
    Pop,
    Time,
    Info,
    /// Looks at the scope of a key.
    Look(fn(&mut Reply<'_>, &SeriesEntry, &Peek)),
    /// Answers at once.
    Say(fn(&mut Call<'_>)),
    /// Answers at once or later.
    Ask(fn(&mut Call<'_>) -> Outcome),
    /// Changes who the client is, and so whether what follows may be run.
    Greet(fn(&mut Call<'_>) -> Outcome),
}

const GIVES: &[&str] = &["write", "fast"];
const LOOKS: &[&str] = &["readonly", "fast"];
const TALKS: &[&str] = &["noscript", "loading", "stale", "fast"];
/// `no_auth`: may be called by a client that has not shown the secret.
const GREETS: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth"];

const HELLO: &str = "Chooses the version of the protocol, and may show the secret.";

/// The hot ones first: they are looked for in this order.
pub(super) static TABLE: [Spec; 23] = [
    spec(Incr, "incr", 2, GIVES, "string", "The next number of a scope, as an integer."),
    spec(Pop, "lpop", -2, GIVES, "list", "The next numbers of a scope, as texts."),
    spec(IncrBy, "incrby", 3, GIVES, "string", "The next numbers of a scope; answers with the last of them."),
    spec(Pop, "rpop", -2, GIVES, "list", "The same as LPOP: numbers have one order."),
    spec(Look(get::answer), "get", 2, LOOKS, "string", "The highest number that a scope has given."),
    spec(Look(llen::answer), "llen", 2, LOOKS, "list", "How many numbers a scope has left."),
    spec(Look(exists::answer), "exists", 2, LOOKS, "generic", "Whether a scope has given numbers."),
    spec(Look(r#type::answer), "type", 2, LOOKS, "generic", "As what Redis would know a scope."),
    spec(Ask(next::run), "bates.next", -2, GIVES, "bates", "The next numbers of a scope of a named series."),
    spec(Ask(peek::run), "bates.peek", -2, LOOKS, "bates", "What comes next in a scope, without taking it."),
    spec(Ask(validate::run), "bates.validate", 3, LOOKS, "bates", "What speaks against a text."),
    spec(Ask(ping::run), "ping", -1, TALKS, "connection", "Answers PONG, or with its argument."),
    spec(Say(echo::run), "echo", 2, TALKS, "connection", "Answers with its argument."),
    spec(Greet(hello::run), "hello", -1, GREETS, "connection", HELLO),
    spec(Greet(auth::run), "auth", -2, GREETS, "connection", "Shows the secret."),
    spec(Greet(reset::run), "reset", 1, GREETS, "connection", "Makes the connection as it was at first."),
    spec(Greet(quit::run), "quit", -1, GREETS, "connection", "Ends the connection."),
    spec(Say(select::run), "select", 2, TALKS, "connection", "Chooses the database; there is one, 0."),
    spec(Time, "time", 1, TALKS, "server", "The time of day."),
    spec(Say(client::run), "client", -2, TALKS, "connection", "Who is connected, and under what name."),
    spec(Say(commands::run), "command", -1, TALKS, "server", "Tells of these commands."),
    spec(Say(config::run), "config", -2, TALKS, "server", "What tools ask of the configuration."),
    spec(Info, "info", -1, TALKS, "server", "How the server is."),
];

#[inline]
pub(super) fn find(name: &[u8]) -> Option<&'static Spec> {
    TABLE.iter().find(|spec| spec.name.as_bytes() == name)
}

impl Spec {
    /// Whether it may be called with so many arguments, its name among them.
    #[inline]
    pub(super) fn takes(&self, arg_count: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { arg_count >= least } else { arg_count == least }
    }

    /// Whether it may be called before the secret is shown.
    pub(super) fn is_for_strangers(&self) -> bool {
        self.flags.contains(&"no_auth")
    }
}

const fn spec(
    run: Run,
    name: &'static str,
    arity: i8,
    flags: &'static [&'static str],
    group: &'static str,
    summary: &'static str,
) -> Spec {
    let has_key = matches!(run, Incr | IncrBy | Pop | Look(_));
    Spec { run, name, arity, has_key, flags, group, summary }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_own_name() {
        for spec in &TABLE {
            assert_eq!(find(spec.name.as_bytes()).unwrap().name, spec.name);
            assert!(spec.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'.'));
            assert!(spec.name.len() <= super::super::NAME_BYTES_MAX);
        }
    }

    #[test]
    fn strangers_may_only_say_who_they_are_and_leave() {
        let names: Vec<_> =
            TABLE.iter().filter(|spec| spec.is_for_strangers()).map(|spec| spec.name).collect();
        assert_eq!(names, ["hello", "auth", "reset", "quit"]);
    }

    #[test]
    fn an_arity_is_exact_or_a_minimum() {
        let incr = find(b"incr").unwrap();
        assert!([false, true, false] == [1, 2, 3].map(|count| incr.takes(count)));
        let lpop = find(b"lpop").unwrap();
        assert!([false, true, true] == [1, 2, 3].map(|count| lpop.takes(count)));
    }
}
