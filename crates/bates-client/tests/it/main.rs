//! A pool taken from a real Redis, with a stand-in for Bates that fills it, while either of them fails.
#![allow(clippy::unwrap_used)]

mod failing;
mod proxy;
mod restarted;
mod stage;
mod stand_in;
mod taking;
