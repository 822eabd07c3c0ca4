//! `SUBSCRIBE` and `UNSUBSCRIBE`, which some clients send when they connect. The server publishes nothing.

use super::{Call, Outcome};

/// Channels of a connection. Clients subscribe to one.
const CHANNELS_MAX: usize = 64;
const CHANNEL_BYTES_MAX: usize = 256;

/// Answers once for each channel.
pub(super) fn subscribe(call: &mut Call<'_>) -> Outcome {
    let channels = call.command.args().skip(1);
    let are_short = channels.clone().all(|channel| channel.len() <= CHANNEL_BYTES_MAX);
    if call.session.channels.len() + channels.len() > CHANNELS_MAX || !are_short {
        let limit = format_args!("{CHANNELS_MAX} channels of {CHANNEL_BYTES_MAX} bytes");
        return call.fail("ERR", format_args!("a connection can subscribe to at most {limit}"));
    }
    for channel in channels {
        call.session.channels.insert(channel.into());
        confirm(call, b"subscribe", Some(channel));
    }
    Outcome::Answered
}

/// Without a channel, ends all subscriptions.
pub(super) fn unsubscribe(call: &mut Call<'_>) -> Outcome {
    if call.command.arg_count() > 1 {
        for channel in call.command.args().skip(1) {
            call.session.channels.remove(channel);
            confirm(call, b"unsubscribe", Some(channel));
        }
        return Outcome::Answered;
    }
    if call.session.channels.is_empty() {
        confirm(call, b"unsubscribe", None);
    }
    while let Some(channel) = call.session.channels.pop_first() {
        confirm(call, b"unsubscribe", Some(&channel));
    }
    Outcome::Answered
}

fn confirm(call: &mut Call<'_>, kind: &[u8], channel: Option<&[u8]>) {
    let count = call.session.channels.len() as u64;
    let mut reply = call.reply();
    reply.push(3);
    reply.bulk(kind);
    match channel {
        Some(channel) => reply.bulk(channel),
        None => reply.null(),
    }
    reply.unsigned(count);
}
