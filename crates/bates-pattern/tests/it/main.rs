//! Tests of the public API of the pattern crate.
#![allow(clippy::unwrap_used)]

mod bijection;
mod capacity;
mod claims;
mod dates;
mod golden;
mod hot_path;
mod openg2p;
mod properties;
mod refusals;
mod scopes;

use bates_pattern::{Key, Options, Order, Pattern, Position, Reject, Scope};

pub(crate) const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";

pub(crate) fn position(value: u64) -> Position {
    Position::new(value).unwrap()
}

pub(crate) fn shuffled() -> Options {
    Options { order: Order::Shuffled(KEY.parse::<Key>().unwrap()), ..Options::default() }
}

pub(crate) fn rejecting(rules: &str) -> Options {
    Options { reject: Reject::default().with_digits(rules.parse().unwrap()), ..Options::default() }
}

pub(crate) fn compile(template: &str, options: Options) -> Pattern {
    Pattern::compile(template, options).unwrap_or_else(|error| panic!("{template}: {error}"))
}

/// The one scope of a pattern without parameters or date.
pub(crate) fn only_scope(template: &str, options: Options) -> Scope {
    compile(template, options).scope([("", ""); 0], None).unwrap()
}
