//! `COMMAND`: the table told to clients, in the form that Redis 7 has.

use bates_core::Store;

use super::table::{self, Spec, TABLE};
use super::{Call, NAME_BYTES_MAX, Reply, lower, shown};

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) {
    let command = call.command;
    let mut reply = call.reply();
    let what = command.arg(1).map(<[u8]>::to_ascii_uppercase);
    let named = command.arg_count() > 2;
    match what.as_deref() {
        None => all(&mut reply),
        Some(b"COUNT") if !named => reply.integer(i64::try_from(TABLE.len()).unwrap_or(i64::MAX)),
        Some(b"LIST") if !named => {
            reply.array(TABLE.len());
            for spec in &TABLE {
                reply.bulk(spec.name.as_bytes());
            }
        }
        Some(b"INFO") if !named => all(&mut reply),
        Some(b"INFO") => {
            reply.array(command.arg_count() - 2);
            for name in command.args().skip(2) {
                match find(name) {
                    Some(spec) => tell(spec, &mut reply),
                    None => reply.null_array(),
                }
            }
        }
        Some(b"DOCS") if !named => document(TABLE.iter().collect(), &mut reply),
        // Names that nobody knows are left out.
        Some(b"DOCS") => document(command.args().skip(2).filter_map(find).collect(), &mut reply),
        Some(what) => {
            let what = shown(what);
            reply.error("ERR", format_args!("unknown subcommand or wrong number of arguments for '{what}'"));
        }
    }
}

fn find(name: &[u8]) -> Option<&'static Spec> {
    table::find(lower(name, &mut [0; NAME_BYTES_MAX]))
}

fn all(reply: &mut Reply<'_>) {
    reply.array(TABLE.len());
    for spec in &TABLE {
        tell(spec, reply);
    }
}

/// Name, arity, flags, first key, last key, step; then what we have none of: categories, tips, key
/// specifications, subcommands.
fn tell(spec: &Spec, reply: &mut Reply<'_>) {
    let key = i64::from(spec.has_key);
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(spec.arity.into());
    reply.set(spec.flags.len());
    for flag in spec.flags {
        reply.simple(flag);
    }
    for _ in ["first key", "last key", "step"] {
        reply.integer(key);
    }
    reply.set(0);
    for _ in ["tips", "key specifications", "subcommands"] {
        reply.array(0);
    }
}

fn document(specs: Vec<&Spec>, reply: &mut Reply<'_>) {
    reply.map(specs.len());
    for spec in specs {
        reply.bulk(spec.name.as_bytes());
        reply.map(2);
        for (name, value) in [("summary", spec.summary), ("group", spec.group)] {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
    }
}
