//! Reads the replies of Redis.

use bates_core::{ListRefusal, ServerIdentity};
use redis::Value;

pub(crate) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

pub(crate) fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        value => text(value)?.parse().ok(),
    }
}

pub(crate) fn server_error(value: &Value) -> Option<Box<str>> {
    match value {
        Value::ServerError(error) => Some(error.to_string().into()),
        _ => None,
    }
}

pub(crate) fn unexpected(value: &Value) -> Box<str> {
    server_error(value).unwrap_or_else(|| format!("unexpected answer of Redis: {value:?}").into())
}

/// The reply of a script that compares the marker. The outer error means that the outcome is unknown.
pub(crate) fn read_verdict(value: &Value) -> Result<Result<(), ListRefusal>, Box<str>> {
    let Value::Array(parts) = value else { return Err(unexpected(value)) };
    let part = |at: usize| parts.get(at).and_then(text).unwrap_or_default();
    match part(0) {
        "open" | "again" => Ok(Ok(())),
        "epoch" => Ok(Err(ListRefusal::Epoch(part(1).parse().ok()))),
        "server" => {
            let (run, replication) = (part(1).into(), part(2).into());
            Ok(Err(ListRefusal::Server(ServerIdentity { run, replication })))
        }
        "foreign" => Ok(Err(ListRefusal::OtherStore)),
        "fenced" => Ok(Err(ListRefusal::Fenced)),
        "type" => Ok(Err(ListRefusal::NotAList)),
        _ => Err(unexpected(value)),
    }
}

/// From the sections `server` and `replication` of `INFO`.
pub(crate) fn identity(about_server: &Value, about_replication: &Value) -> Result<ServerIdentity, Box<str>> {
    let field = |value: &Value, name: &str| -> Result<Box<str>, Box<str>> {
        let lines = text(value).ok_or_else(|| unexpected(value))?.lines();
        let found = lines.filter_map(|line| line.split_once(':')).find(|(field, _)| *field == name);
        found
            .map(|(_, value)| value.trim().into())
            .ok_or_else(|| format!("INFO of Redis has no {name}").into())
    };
    Ok(ServerIdentity {
        run: field(about_server, "run_id")?,
        replication: field(about_replication, "master_replid")?,
    })
}
