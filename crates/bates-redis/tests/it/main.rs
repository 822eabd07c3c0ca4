//! Pools on a real Redis: pushes take effect once, and stale fillers are refused whatever Redis forgets.
#![allow(clippy::unwrap_used)]

mod lists;
