//! `COMMAND`: the table told to clients, in the form that Redis 7 has.

use super::table::{self, Spec, TABLE};
use super::{Call, NAME_BYTES_MAX, Reply, lower, shown};

pub(super) fn run(call: &mut Call<'_>) {
    let command = call.command;
    let mut reply = call.reply();
    let is_of_all = command.arg_count() <= 2;
    let named = command.args().skip(2).map(|name| table::find(lower(name, &mut [0; NAME_BYTES_MAX])));
    let specs: Vec<Option<&Spec>> =
        if is_of_all { TABLE.iter().map(Some).collect() } else { named.collect() };
    match command.arg(1).map(<[u8]>::to_ascii_uppercase).as_deref() {
        Some(b"COUNT") if is_of_all => reply.count(TABLE.len() as u64),
        Some(b"LIST") if is_of_all => {
            reply.array(TABLE.len());
            for spec in &TABLE {
                reply.bulk(spec.name.as_bytes());
            }
        }
        None | Some(b"INFO") => {
            reply.array(specs.len());
            for spec in specs {
                match spec {
                    Some(spec) => tell(spec, &mut reply),
                    None => reply.null_array(),
                }
            }
        }
        // Names that nobody knows are left out.
        Some(b"DOCS") => document(specs.into_iter().flatten().collect(), &mut reply),
        Some(what) => {
            let what = shown(what);
            reply.error("ERR", format_args!("unknown subcommand or wrong number of arguments for '{what}'"));
        }
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
        reply.pairs([("summary", spec.summary), ("group", spec.group)]);
    }
}
