//! `TIME`: seconds since 1970, and the microseconds within the second.

use bates_core::Store;

use super::Call;

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) {
    let micros = call.machine.now().as_microsecond();
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk(micros.div_euclid(1_000_000).to_string().as_bytes());
    reply.bulk(micros.rem_euclid(1_000_000).to_string().as_bytes());
}
