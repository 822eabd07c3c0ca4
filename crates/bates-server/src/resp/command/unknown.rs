//! Commands that would take a number back or set it, and unknown commands.

use bates_core::Store;

use super::{Call, shown};

const TAKES_BACK: &str = "set setnx setex psetex getset getdel mset del unlink decr decrby incrbyfloat lpush rpush \
    lpushx rpushx lrem ltrim lset linsert rename expire pexpire flushall flushdb restore";

pub(super) fn run<S: Store>(name: &[u8], call: &mut Call<'_, S>) {
    let shown = shown(call.command.name());
    let mut reply = call.reply();
    if TAKES_BACK.split(' ').any(|known| known.as_bytes() == name) {
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
