//! Fuzzes the reader of the Redis protocol: it accepts or refuses any bytes, in the same way however they are split.
#![no_main]

#[path = "../../crates/bates-server/tests/it/claims.rs"]
#[allow(dead_code)]
mod claims;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (split, bytes) = input;
    claims::check_bytes(bytes, split);
});
