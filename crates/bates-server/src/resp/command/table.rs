//! The table of commands: name, number of arguments, key, right, flags. Dispatch, the check of arguments, the check of
//! authentication and the answers of `COMMAND` come from here.

use bates_core::{Peek, Right, SeriesEntry};

use super::{
    Call, Outcome, Reply, auth, client, cluster, commands, config, echo, exists, get, hello, llen, multi,
    peek, ping, quit, reset, select, subscribe, r#type, validate,
};
use Handler::{Answer, Control, Counters, Execute, Incr, IncrBy, Info, Inspect, Next, Outside, Pop, Time};

pub(super) struct Spec {
    pub(super) handler: Handler,
    /// In lower case, as in Redis.
    pub(super) name: &'static str,
    /// The number of arguments, including the name; negative for a minimum.
    pub(super) arity: i8,
    /// The index of the last argument that is a key; -1 for the last of all, 0 if none is. The first key is at 1.
    pub(super) last_key: i8,
    pub(super) class: Class,
    pub(super) group: &'static str,
    pub(super) summary: &'static str,
}

/// What a command needs, and how Redis would mark it.
#[derive(Clone, Copy)]
pub(super) struct Class {
    /// For the series that the command names; `None` if it names none.
    pub(super) right: Option<Right>,
    /// As Redis names them.
    pub(super) flags: &'static [&'static str],
}

/// How a command is run.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    Incr,
    IncrBy,
    Pop,
    /// Names a scope by its series and parameters.
    Next,
    Time,
    Info,
    /// Shows the state of the scope of a key.
    Inspect(fn(&mut Reply<'_>, &SeriesEntry, &Peek)),
    /// Shows the state of the scopes of many keys.
    Counters,
    /// Answers at once.
    Answer(fn(&mut Call<'_>)),
    /// Answers at once, or becomes a request to the store.
    Execute(fn(&mut Call<'_>) -> Outcome),
    /// Changes the caller or the form of later answers, and so is refused inside `MULTI`.
    Outside(fn(&mut Call<'_>) -> Outcome),
    /// Changes when later commands run, or whether. Runs at once inside `MULTI`.
    Control(fn(&mut Call<'_>) -> Outcome),
}

const WRITE: Class = Class { right: Some(Right::Take), flags: &["write", "fast"] };
const READ: Class = Class { right: Some(Right::Read), flags: &["readonly", "fast"] };
const BASIC: Class = Class { right: None, flags: &["noscript", "loading", "stale", "fast"] };
/// `no_auth`: allowed before authentication.
const NO_AUTH: Class = Class { right: None, flags: &["noscript", "loading", "stale", "fast", "no_auth"] };

const PUBSUB: Class = Class { right: None, flags: &["pubsub", "noscript", "loading", "stale"] };

const HELLO: &str = "Selects the version of the protocol, and may authenticate.";

/// The most frequent commands first: a search goes in this order.
pub(super) static TABLE: [Spec; 33] = [
    spec(Incr, "incr", 2, WRITE, "string", "The next number of a scope, as an integer."),
    spec(Pop, "lpop", -2, WRITE, "list", "The next numbers of a scope, as texts."),
    spec(IncrBy, "incrby", 3, WRITE, "string", "The next numbers of a scope; answers with the last of them."),
    spec(Pop, "rpop", -2, WRITE, "list", "The same as LPOP: numbers have one order."),
    spec(Inspect(get::answer), "get", 2, READ, "string", "The highest number that a scope has issued."),
    spec(Counters, "mget", -2, READ, "string", "The highest numbers that scopes have issued."),
    spec(Inspect(llen::answer), "llen", 2, READ, "list", "How many numbers a scope has left."),
    spec(Inspect(exists::answer), "exists", 2, READ, "generic", "Whether a scope has issued numbers."),
    spec(Inspect(r#type::answer), "type", 2, READ, "generic", "The Redis type of a scope."),
    spec(Next, "bates.next", -2, WRITE, "bates", "The next numbers of a scope, by its series."),
    spec(Execute(peek::run), "bates.peek", -2, READ, "bates", "The next position of a scope; takes nothing."),
    spec(Execute(validate::run), "bates.validate", 3, READ, "bates", "Whether a text is valid, and why not."),
    spec(Execute(ping::run), "ping", -1, BASIC, "connection", "Answers PONG, or with its argument."),
    spec(Answer(echo::run), "echo", 2, BASIC, "connection", "Answers with its argument."),
    spec(Outside(hello::run), "hello", -1, NO_AUTH, "connection", HELLO),
    spec(Outside(auth::run), "auth", -2, NO_AUTH, "connection", "Authenticates the connection."),
    spec(Control(reset::run), "reset", 1, NO_AUTH, "connection", "Resets the connection to its first state."),
    spec(Control(quit::run), "quit", -1, NO_AUTH, "connection", "Ends the connection."),
    spec(Control(multi::begin), "multi", 1, BASIC, "transactions", "Queues the commands that follow."),
    spec(Control(multi::exec), "exec", 1, BASIC, "transactions", "Executes the queued commands in order."),
    spec(Control(multi::discard), "discard", 1, BASIC, "transactions", "Drops the queued commands."),
    spec(Control(multi::watch), "watch", -2, BASIC, "transactions", "Is refused."),
    spec(
        Answer(multi::unwatch),
        "unwatch",
        1,
        BASIC,
        "transactions",
        "Does nothing, because nothing is watched.",
    ),
    spec(Answer(select::run), "select", 2, BASIC, "connection", "Selects the database; there is only 0."),
    spec(Time, "time", 1, BASIC, "server", "The time of day."),
    spec(Answer(client::run), "client", -2, BASIC, "connection", "The connected clients and their names."),
    spec(Answer(commands::run), "command", -1, BASIC, "server", "Describes these commands."),
    spec(Answer(config::run), "config", -2, BASIC, "server", "The settings that tools ask for."),
    spec(Outside(subscribe::subscribe), "subscribe", -2, PUBSUB, "pubsub", "Is confirmed; no message comes."),
    spec(Outside(subscribe::unsubscribe), "unsubscribe", -1, PUBSUB, "pubsub", "Ends subscriptions."),
    spec(Execute(cluster::cluster), "cluster", -2, BASIC, "cluster", "Says that there is no cluster."),
    spec(Answer(cluster::role), "role", 1, BASIC, "server", "A master without replicas."),
    spec(Info, "info", -1, BASIC, "server", "The state of the server."),
];

#[inline]
pub(super) fn find(name: &[u8]) -> Option<&'static Spec> {
    TABLE.iter().find(|spec| spec.name.as_bytes() == name)
}

impl Spec {
    /// Whether the command accepts this number of arguments, including its name.
    #[inline]
    pub(super) fn takes(&self, arg_count: usize) -> bool {
        let min = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { arg_count >= min } else { arg_count == min }
    }

    /// Whether the command ends a transaction.
    pub(super) fn ends_transaction(&self) -> bool {
        matches!(self.name, "exec" | "discard")
    }

    pub(super) fn needs_no_auth(&self) -> bool {
        self.class.flags.contains(&"no_auth")
    }
}

const fn spec(
    handler: Handler,
    name: &'static str,
    arity: i8,
    class: Class,
    group: &'static str,
    summary: &'static str,
) -> Spec {
    let last_key = match handler {
        Incr | IncrBy | Pop | Inspect(_) => 1,
        Counters => -1,
        _ => 0,
    };
    Spec { handler, name, arity, last_key, class, group, summary }
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
    fn only_commands_that_authenticate_or_end_need_no_auth() {
        let names: Vec<_> = TABLE.iter().filter(|spec| spec.needs_no_auth()).map(|spec| spec.name).collect();
        assert_eq!(names, ["hello", "auth", "reset", "quit"]);
    }

    #[test]
    fn every_command_that_names_a_series_needs_a_right() {
        for spec in &TABLE {
            let names_series = spec.last_key != 0 || spec.group == "bates";
            assert_eq!(spec.class.right.is_some(), names_series, "{}", spec.name);
            let takes = matches!(spec.handler, Incr | IncrBy | Pop) || spec.name == "bates.next";
            assert_eq!(spec.class.right == Some(Right::Take), takes, "{}", spec.name);
        }
    }

    #[test]
    fn an_arity_is_exact_or_a_minimum() {
        let incr = find(b"incr").unwrap();
        assert!([false, true, false] == [1, 2, 3].map(|count| incr.takes(count)));
        let lpop = find(b"lpop").unwrap();
        assert!([false, true, true] == [1, 2, 3].map(|count| lpop.takes(count)));
    }
}
