//! Pools on a real Redis: what is pushed once, what is refused, and what Redis may do meanwhile.
#![allow(clippy::unwrap_used)]

mod lists;
