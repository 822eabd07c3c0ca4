//! `COMMAND`: the table of commands, in the format of Redis 7.

use super::table::{self, Spec, TABLE};
use super::{Call, NAME_BYTES_MAX, Reply, lower, printable};

pub(super) fn run(call: &mut Call<'_>) {
    let command = call.command;
    let mut reply = call.reply();
    let is_unfiltered = command.arg_count() <= 2;
    let named = command.args().skip(2).map(|name| table::find(lower(name, &mut [0; NAME_BYTES_MAX])));
    let specs: Vec<_> = if is_unfiltered { TABLE.iter().map(Some).collect() } else { named.collect() };
    match command.arg(1).map(<[u8]>::to_ascii_uppercase).as_deref() {
        Some(b"COUNT") if is_unfiltered => reply.unsigned(TABLE.len() as u64),
        Some(b"LIST") if is_unfiltered => {
            reply.array(TABLE.len());
            for spec in &TABLE {
                reply.bulk(spec.name.as_bytes());
            }
        }
        None | Some(b"INFO") => {
            reply.array(specs.len());
            for spec in specs {
                match spec {
                    Some(spec) => write_info(spec, &mut reply),
                    None => reply.null_array(),
                }
            }
        }
        // Unknown names are left out, as Redis does.
        Some(b"DOCS") => write_docs(specs.into_iter().flatten().collect(), &mut reply),
        Some(name) => {
            let name = printable(name);
            reply.error("ERR", format_args!("unknown subcommand or wrong number of arguments for '{name}'"));
        }
    }
}

/// Name, arity, flags, first key, last key, step; then empty: categories, tips, key specifications, subcommands.
fn write_info(spec: &Spec, reply: &mut Reply<'_>) {
    let first_key = i64::from(spec.last_key != 0);
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(spec.arity.into());
    reply.set(spec.class.flags.len());
    for flag in spec.class.flags {
        reply.simple(flag);
    }
    let step = first_key;
    for place in [first_key, spec.last_key.into(), step] {
        reply.integer(place);
    }
    reply.set(0);
    for _ in ["tips", "key specifications", "subcommands"] {
        reply.array(0);
    }
}

fn write_docs(specs: Vec<&Spec>, reply: &mut Reply<'_>) {
    reply.map(specs.len());
    for spec in specs {
        reply.bulk(spec.name.as_bytes());
        reply.map(2);
        reply.pairs([("summary", spec.summary), ("group", spec.group)]);
    }
}
