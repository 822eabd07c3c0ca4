//! Pools on a real Redis: what is pushed once, what is refused, and what Redis may do meanwhile.

mod lists;
