//! Commands that would take a number back or set it, and commands that nobody knows.

use super::super::session::Session;
use super::{Command, Reply, shown};

const TAKES_BACK: [&[u8]; 26] = [
    b"SET",
    b"SETNX",
    b"SETEX",
    b"PSETEX",
    b"GETSET",
    b"GETDEL",
    b"MSET",
    b"DEL",
    b"UNLINK",
    b"DECR",
    b"DECRBY",
    b"INCRBYFLOAT",
    b"LPUSH",
    b"RPUSH",
    b"LPUSHX",
    b"RPUSHX",
    b"LREM",
    b"LTRIM",
    b"LSET",
    b"LINSERT",
    b"RENAME",
    b"EXPIRE",
    b"PEXPIRE",
    b"FLUSHALL",
    b"FLUSHDB",
    b"RESTORE",
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
