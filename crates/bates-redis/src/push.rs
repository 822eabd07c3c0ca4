//! A push: one transaction that compares the marker, appends the numbers and moves the marker, or does nothing.
//!
//! A script compares; plain commands append, which is three times as fast as a script. A transaction has no condition, so
//! the script renames the list to the stage key if it allows the push, and `RPUSHX` appends only to a stage that exists.

use bates_core::{ListRefusal, PushRequest};
use redis::{Pipeline, Value};

use crate::planted::pushes_without_fence;
use crate::reply::{read_verdict, server_error, unexpected};
use crate::scripts::{self, Keys, script};

const COMMAND_VALUES_MAX: usize = 1_000;

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
        for value in values.by_ref().take(COMMAND_VALUES_MAX) {
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
    let (begun, reason) = (replies.first(), replies.iter().find_map(server_error));
    if let (Some(Value::Okay), Value::ServerError(_), Some(reason)) = (begun, executed, reason) {
        return Ok(Err(ListRefusal::Unable(reason)));
    }
    let Value::Array(outcomes) = executed else { return Err(unexpected(executed)) };
    let verdict = read_verdict(outcomes.first().unwrap_or(&Value::Nil))?;
    // Invariant: a push succeeded only if every command after the comparison did.
    match outcomes.iter().find(|outcome| matches!(outcome, Value::ServerError(_))) {
        Some(error) => Err(unexpected(error)),
        None => Ok(verdict),
    }
}
