//! Commands that set numbers or take them back, and unknown commands.

use super::{Call, Outcome, printable};

const TAKE_BACK: &str = "set setnx setex psetex getset getdel mset del unlink decr decrby incrbyfloat lpush rpush \
    lpushx rpushx lrem ltrim lset linsert rename expire pexpire flushall flushdb restore";

pub(super) fn run(name: &[u8], call: &mut Call<'_>) -> Outcome {
    let typed = printable(call.command.name());
    if !TAKE_BACK.split(' ').any(|known| known.as_bytes() == name) {
        return call.fail("ERR", format_args!("unknown command '{typed}'"));
    }
    let reason = "would set numbers or take them back: a number is issued once and for all";
    call.fail("ERR", format_args!("{typed} {reason}"))
}
