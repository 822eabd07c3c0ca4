//! A pool on a real Redis, filled by a stand-in for Bates, while either of them fails.
#![allow(clippy::unwrap_used)]

mod fixture;
mod outages;
mod proxy;
mod restarted;
mod stand_in;
mod taking;
