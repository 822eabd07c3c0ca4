//! Commands that would take a number back or set it, and commands that nobody knows.

use super::super::session::Session;
use super::{Command, Reply, shown};

const TAKES_BACK: [&[u8]; 26] = [
    b"set",
    b"setnx",
    b"setex",
    b"psetex",
    b"getset",
    b"getdel",
    b"mset",
    b"del",
    b"unlink",
    b"decr",
    b"decrby",
    b"incrbyfloat",
    b"lpush",
    b"rpush",
    b"lpushx",
    b"rpushx",
    b"lrem",
    b"ltrim",
    b"lset",
    b"linsert",
    b"rename",
    b"expire",
    b"pexpire",
    b"flushall",
    b"flushdb",
    b"restore",
];

pub(super) fn execute(name: &[u8], command: Command<'_>, session: &Session, output: &mut Vec<u8>) {
    let mut reply = Reply::new(output, session.protocol);
    let shown = shown(command.name());
    if TAKES_BACK.contains(&name) {
        reply.error(
            "ERR",
            format_args!(
                "{shown} would set numbers or take them back, and a number is given once and for all"
            ),
        );
    } else {
        reply.error("ERR", format_args!("unknown command '{shown}'"));
    }
}
