//! Property tests of the reader: any pipeline and any bytes, split in any way.

use bates_server::resp::Limits;
use proptest::collection::vec;
use proptest::prelude::*;

use super::claims::{Args, Outcome, check_bytes, encode, read_chunks};

/// Commands of any bytes, most as short as real ones.
fn commands() -> impl Strategy<Value = Vec<Args>> {
    let arg = prop_oneof![9 => vec(any::<u8>(), 0..24), 1 => vec(any::<u8>(), 0..2_000)];
    vec(vec(arg, 1..8), 0..12)
}

const PIECES: &[&str] = &[
    "*1\r\n",
    "*2\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*5\r\n",
    "*11\r\n",
    "*",
    "$4\r\nPING\r\n",
    "$0\r\n\r\n",
    "$1\r\nx\r\n",
    "$13\r\n",
    "$-1\r\n",
    "$",
    "\r\n",
    "\n",
    "\r",
    "PING\r\n",
    "INCR \"a\\x41b\" 'c'\r\n",
    "POST ",
    "host:",
    "\"",
    "'",
    "\\",
    "\\x4",
    " ",
    "\t",
    "\0",
    "0",
    "1",
    "9",
    "-",
    "+",
    "a word too long",
    "\u{b}",
];

/// Bytes that look like the protocol often enough to reach its depths.
fn nearly_protocol() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..4),
    ];
    vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_of_a_pipeline_yields_the_same_commands(
        commands in commands(), sizes in vec(1_usize..64, 1..32),
    ) {
        let bytes = encode(&commands);
        let mut chunks = Vec::new();
        let mut rest = &bytes[..];
        for size in sizes.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, behind) = rest.split_at(size.min(rest.len()));
            chunks.push(chunk);
            rest = behind;
        }
        prop_assert_eq!(read_chunks(Limits::AUTHENTICATED, chunks), Outcome { commands, end: Ok(0) });
    }

    #[test]
    fn every_two_pieces_of_a_pipeline_yield_the_same_commands(commands in vec(vec(vec(any::<u8>(), 0..6), 1..4), 0..4)) {
        let bytes = encode(&commands);
        let whole = Outcome { commands, end: Ok(0) };
        for at in 0..=bytes.len() {
            let (front, back) = bytes.split_at(at);
            prop_assert_eq!(&read_chunks(Limits::AUTHENTICATED, [front, back]), &whole);
        }
    }

    #[test]
    fn any_bytes_are_commands_or_refused_however_they_are_split(bytes in vec(any::<u8>(), 0..200), split: u8) {
        check_bytes(&bytes, split);
    }

    #[test]
    fn bytes_close_to_the_protocol_are_commands_or_refused_however_they_are_split(
        bytes in nearly_protocol(), split in 0_u8..40,
    ) {
        check_bytes(&bytes, split);
    }
}

/// If the reader began at the start again for every byte, this test would take forever.
#[test]
fn the_command_with_the_most_arguments_is_read_even_byte_by_byte() {
    let command = vec![vec![b'x'; 9]; Limits::AUTHENTICATED.arg_count_max];
    let bytes = encode(std::slice::from_ref(&command));
    let outcome = read_chunks(Limits::AUTHENTICATED, bytes.chunks(1));
    assert_eq!(outcome, Outcome { commands: vec![command], end: Ok(0) });
}
