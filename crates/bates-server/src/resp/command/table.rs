//! The table of commands: what each is called, how many arguments it takes and where its keys stand. Dispatch,
//! the check of arguments, the check of who may call, and all that `COMMAND` answers come from here.

/// A command that is there.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) verb: Verb,
    /// In lower case, as Redis names commands.
    pub(super) name: &'static str,
    /// How many arguments, the name among them; negative for a minimum.
    pub(super) arity: i8,
    pub(super) keys: Keys,
    /// In the words of Redis.
    pub(super) flags: &'static [&'static str],
    pub(super) group: &'static str,
    pub(super) summary: &'static str,
}

/// What runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Incr,
    IncrBy,
    Pop,
    Get,
    Llen,
    Exists,
    Type,
    Next,
    Peek,
    Validate,
    Ping,
    Echo,
    Hello,
    Auth,
    Select,
    Reset,
    Quit,
    Time,
    Client,
    Command,
    Config,
    Info,
}

/// Where keys stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    None,
    /// The first argument is the one key.
    First,
}

const GIVES: &[&str] = &["write", "fast"];
const LOOKS: &[&str] = &["readonly", "fast"];
const TALKS: &[&str] = &["noscript", "loading", "stale", "fast"];
/// `no_auth`: may be called by a client that has not shown the secret.
const GREETS: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth"];

/// The hot ones first: they are looked for in this order.
pub(super) static TABLE: [Spec; 23] = [
    gives(Verb::Incr, "incr", 2, "string", "The next number of a scope, as an integer."),
    gives(Verb::Pop, "lpop", -2, "list", "The next numbers of a scope, as texts."),
    gives(Verb::IncrBy, "incrby", 3, "string", "The next numbers of a scope; answers with the last of them."),
    gives(Verb::Pop, "rpop", -2, "list", "The same as LPOP: numbers have one order."),
    looks(Verb::Get, "get", "string", "The highest number that a scope has given."),
    looks(Verb::Llen, "llen", "list", "How many numbers a scope has left."),
    looks(Verb::Exists, "exists", "generic", "Whether a scope has given numbers."),
    looks(Verb::Type, "type", "generic", "As what Redis would know a scope."),
    by_name(Verb::Next, "bates.next", -2, GIVES, "The next numbers of a scope of a named series."),
    by_name(Verb::Peek, "bates.peek", -2, LOOKS, "What comes next in a scope, without taking it."),
    by_name(Verb::Validate, "bates.validate", 3, LOOKS, "What speaks against a text."),
    talks(Verb::Ping, "ping", -1, "connection", "Answers PONG, or with its argument."),
    talks(Verb::Echo, "echo", 2, "connection", "Answers with its argument."),
    greets(Verb::Hello, "hello", -1, "Chooses the version of the protocol, and may show the secret."),
    greets(Verb::Auth, "auth", -2, "Shows the secret."),
    greets(Verb::Reset, "reset", 1, "Makes the connection as it was at first."),
    greets(Verb::Quit, "quit", -1, "Ends the connection."),
    talks(Verb::Select, "select", 2, "connection", "Chooses the database; there is one, 0."),
    talks(Verb::Time, "time", 1, "server", "The time of day."),
    talks(Verb::Client, "client", -2, "connection", "Who is connected, and under what name."),
    talks(Verb::Command, "command", -1, "server", "Tells of these commands."),
    talks(Verb::Config, "config", -2, "server", "What tools ask of the configuration."),
    talks(Verb::Info, "info", -1, "server", "How the server is."),
];

/// The command of a name in lower case.
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

const fn gives(
    verb: Verb,
    name: &'static str,
    arity: i8,
    group: &'static str,
    summary: &'static str,
) -> Spec {
    Spec { verb, name, arity, keys: Keys::First, flags: GIVES, group, summary }
}

const fn looks(verb: Verb, name: &'static str, group: &'static str, summary: &'static str) -> Spec {
    Spec { verb, name, arity: 2, keys: Keys::First, flags: LOOKS, group, summary }
}

const fn by_name(
    verb: Verb,
    name: &'static str,
    arity: i8,
    flags: &'static [&'static str],
    summary: &'static str,
) -> Spec {
    Spec { verb, name, arity, keys: Keys::None, flags, group: "bates", summary }
}

const fn talks(
    verb: Verb,
    name: &'static str,
    arity: i8,
    group: &'static str,
    summary: &'static str,
) -> Spec {
    Spec { verb, name, arity, keys: Keys::None, flags: TALKS, group, summary }
}

const fn greets(verb: Verb, name: &'static str, arity: i8, summary: &'static str) -> Spec {
    Spec { verb, name, arity, keys: Keys::None, flags: GREETS, group: "connection", summary }
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
