//! `CLUSTER` and `ROLE`: what clients ask to learn whether there are other servers.

use super::{Call, Outcome};

/// In the words of Redis, by which clients know a server that is alone.
pub(super) fn cluster(call: &mut Call<'_>) -> Outcome {
    call.fail("ERR", "This instance has cluster support disabled")
}

/// A master without replicas.
pub(super) fn role(call: &mut Call<'_>) {
    let mut reply = call.reply();
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
}
