//! The wire layer compared with an independent implementation: each side reads what the other writes.

use bates_server::resp::{Limits, Protocol, Reply};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use resp_rs::{resp2, resp3};

use super::claims::{Args, Outcome, read_chunks};

fn as_array(args: &Args) -> resp2::Frame {
    let bulk = |arg: &Vec<u8>| resp2::Frame::BulkString(Some(Bytes::from(arg.clone())));
    resp2::Frame::Array(Some(args.iter().map(bulk).collect()))
}

fn encode(protocol: Protocol, answer: impl FnOnce(&mut Reply<'_>)) -> Bytes {
    let mut out = Vec::new();
    answer(&mut Reply::new(&mut out, protocol));
    Bytes::from(out)
}

fn read_resp2(answer: impl FnOnce(&mut Reply<'_>)) -> resp2::Frame {
    let (frame, rest) = resp2::parse_frame(encode(Protocol::Resp2, answer)).unwrap();
    assert!(rest.is_empty(), "more than one answer: {rest:?}");
    frame
}

fn read_resp3(answer: impl FnOnce(&mut Reply<'_>)) -> resp3::Frame {
    let (frame, rest) = resp3::parse_frame(encode(Protocol::Resp3, answer)).unwrap();
    assert!(rest.is_empty(), "more than one answer: {rest:?}");
    frame
}

/// The answer to `HELLO`, which contains most kinds of values.
fn hello(reply: &mut Reply<'_>) {
    reply.map(3);
    reply.bulk(b"proto");
    reply.integer(3);
    reply.bulk(b"modules");
    reply.array(0);
    reply.bulk(b"flags");
    reply.set(2);
    reply.simple("write");
    reply.null();
}

proptest! {
    #[test]
    fn commands_of_the_oracle_are_read(commands in vec(vec(vec(any::<u8>(), 0..40), 1..6), 1..6)) {
        let frames = commands.iter().map(|args| resp2::frame_to_bytes(&as_array(args)));
        let bytes = frames.collect::<Vec<_>>().concat();
        let expected = Outcome { commands, end: Ok(0) };
        prop_assert_eq!(read_chunks(Limits::AUTHENTICATED, [&bytes[..]]), expected);
    }

    #[test]
    fn integers_and_strings_are_read_by_the_oracle(value: i64, bytes in vec(any::<u8>(), 0..300), text: String) {
        prop_assert_eq!(read_resp2(|reply| reply.integer(value)), resp2::Frame::Integer(value));
        prop_assert_eq!(read_resp3(|reply| reply.integer(value)), resp3::Frame::Integer(value));
        let bulk = Some(Bytes::from(bytes.clone()));
        prop_assert_eq!(read_resp2(|reply| reply.bulk(&bytes)), resp2::Frame::BulkString(bulk.clone()));
        prop_assert_eq!(read_resp3(|reply| reply.bulk(&bytes)), resp3::Frame::BulkString(bulk));
        let verbatim = resp3::Frame::VerbatimString { payload: Bytes::from(format!("txt:{text}")) };
        prop_assert_eq!(read_resp3(|reply| reply.verbatim(&text)), verbatim);
    }

    #[test]
    fn an_error_or_simple_string_of_any_text_is_one_answer_to_the_oracle(text: String) {
        let line = text.replace(['\r', '\n'], " ");
        let error = Bytes::from(format!("ERR {line}"));
        prop_assert_eq!(read_resp2(|reply| reply.error("ERR", &text)), resp2::Frame::Error(error));
        let simple = resp2::Frame::SimpleString(Bytes::from(line));
        prop_assert_eq!(read_resp2(|reply| reply.simple(&text)), simple);
    }
}

#[test]
fn the_answer_to_hello_is_a_map_in_resp3_and_a_flat_array_in_resp2() {
    let resp3::Frame::Map(pairs) = read_resp3(hello) else { panic!("no map") };
    assert_eq!(pairs.len(), 3);
    assert!(matches!(&pairs[2].1, resp3::Frame::Set(flags) if flags[1] == resp3::Frame::Null));
    let resp2::Frame::Array(Some(items)) = read_resp2(hello) else { panic!("no array") };
    assert_eq!(items.len(), 6);
    assert!(
        matches!(&items[5], resp2::Frame::Array(Some(flags)) if flags[1] == resp2::Frame::BulkString(None))
    );
}

#[test]
// A path to the method would not compile: it fixes the lifetime of the buffer.
#[allow(clippy::redundant_closure_for_method_calls)]
fn null_is_read_by_the_oracle() {
    assert_eq!(read_resp2(|reply| reply.null()), resp2::Frame::BulkString(None));
    assert_eq!(read_resp2(|reply| reply.null_array()), resp2::Frame::Array(None));
    assert_eq!(read_resp3(|reply| reply.null()), resp3::Frame::Null);
    assert_eq!(read_resp3(|reply| reply.null_array()), resp3::Frame::Null);
}
