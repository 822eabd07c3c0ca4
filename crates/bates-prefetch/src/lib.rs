//! Numbers in advance: a buffer in the caller's memory, from which a number costs one atomic addition.
//!
//! Owns the buffer, its size and its refilling. Where numbers come from it does not know: a [`Source`] leases them, over a
//! network or from a machine in the same process. Must never hand a position out twice, and must never give one back
//! that it handed out.
//!
//! The way of a number: leased by `refill.rs` in the background, held in `buffer.rs`, taken by a thread from its own
//! `shard.rs`, rendered when it is read (`number.rs`), or reported as unused by `close.rs`.
#![warn(missing_docs)]

mod behind;
mod buffer;
mod close;
mod error;
mod number;
mod prefetched;
mod refill;
mod shard;
mod size;
mod source;

pub use error::{CloseError, Empty};
pub use number::Number;
pub use prefetched::Prefetched;
pub use size::Prefetch;
pub use source::{Given, Numbers, Positions, Source};
