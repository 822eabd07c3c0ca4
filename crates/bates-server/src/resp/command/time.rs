//! `TIME`: seconds since 1970, and the microseconds within the second.

use jiff::Timestamp;

use super::Call;

pub(super) fn run(call: &mut Call<'_>, now: Timestamp) {
    let micros = now.as_microsecond();
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk(micros.div_euclid(1_000_000).to_string().as_bytes());
    reply.bulk(micros.rem_euclid(1_000_000).to_string().as_bytes());
}
