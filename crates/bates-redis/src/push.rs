//! A push: one transaction that compares the marker, appends the numbers and moves the marker, or does nothing.
//!
//! A script compares; the numbers are plain commands, which Redis reads three times as fast as a script. If the push is
//! allowed, the script moves the list to the stage. The numbers are appended only if a list is on the stage.

use bates_core::{ListRefusal, PushRequest};
use redis::{Cmd, Pipeline, Value};

use crate::planted::pushes_without_fence;
use crate::reply::{error, read_verdict, unexpected};
use crate::scripts;

const VALUES_MAX: usize = 1_000;

pub(crate) fn commands(key: &str, push: &PushRequest<'_>, store: &str) -> Pipeline {
    let keys = Keys::of(key);
    let open = if pushes_without_fence() { scripts::OPEN_UNFENCED } else { scripts::OPEN };
    let mut pipeline = Pipeline::new();
    pipeline.cmd("MULTI");
    pipeline.add_command(
        script(open, &[keys.list, &keys.marker, &keys.stage, &keys.lock])
            .arg(push.epoch)
            .arg(&*push.server.run)
            .arg(&*push.server.replication)
            .arg(push.fence)
            .arg(push.from)
            .arg(push.to)
            .arg(push.token)
            .arg(store)
            .take(),
    );
    let mut values = push.numbers.values().peekable();
    while values.peek().is_some() {
        let mut append = redis::cmd("RPUSHX");
        append.arg(&keys.stage);
        for value in values.by_ref().take(VALUES_MAX) {
            append.arg(value);
        }
        pipeline.add_command(append);
    }
    pipeline.add_command(script(scripts::CLOSE, &[keys.list, &keys.stage]));
    pipeline.cmd("EXEC");
    pipeline
}

pub(crate) fn outcome(replies: &[Value]) -> Result<Result<(), ListRefusal>, Box<str>> {
    let Some(executed) = replies.last() else { return Err("the answer of Redis is empty".into()) };
    // If Redis refuses a command of a transaction, it runs none of them.
    let (begun, reason) = (replies.first(), replies.iter().find_map(error));
    if let (Some(Value::Okay), Value::ServerError(_), Some(reason)) = (begun, executed, reason) {
        return Ok(Err(ListRefusal::Unable(reason)));
    }
    let Value::Array(outcomes) = executed else { return Err(unexpected(executed)) };
    let verdict = read_verdict(outcomes.first().unwrap_or(&Value::Nil))?;
    // Invariant: once the list was on the stage, every later command must have succeeded.
    match outcomes.iter().find(|outcome| matches!(outcome, Value::ServerError(_))) {
        Some(error) => Err(unexpected(error)),
        None => Ok(verdict),
    }
}

/// Sent as text, not by digest: an unknown digest would fail, and the numbers after it would be appended.
pub(crate) fn script(text: &str, keys: &[&str]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(text).arg(keys.len()).arg(keys);
    command
}

/// The keys of a pool. All derive from that of the marker, and so have the slot of the list in a cluster.
pub(crate) struct Keys<'k> {
    pub(crate) list: &'k str,
    /// A hash: the epoch, the fence of the last push, and the position pushed to.
    pub(crate) marker: String,
    /// The token of the filler that has the lock.
    pub(crate) lock: String,
    /// Holds the list while numbers are pushed; exists only within a transaction.
    pub(crate) stage: String,
}

impl<'k> Keys<'k> {
    pub(crate) fn of(list: &'k str) -> Self {
        let marker = bates_api::marker_key(list);
        Self { list, lock: format!("{marker}:lock"), stage: format!("{marker}:stage"), marker }
    }
}
