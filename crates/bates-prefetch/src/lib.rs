//! Numbers in advance: a buffer in the caller's memory, from which a number costs one atomic addition.
//!
//! Owns the buffer, its size and its refilling; a [`Source`] leases the numbers, over a network or in the same
//! process. Must never hand a position out twice, nor give one back that it handed out.
//!
//! The way of a number: leased by `background.rs`, held in `buffer.rs`, taken by a thread from its own
//! `shard.rs`, rendered when it is read (`number.rs`), or reported as unused by `background.rs`.
#![warn(missing_docs)]

mod background;
mod buffer;
mod error;
mod number;
mod prefetched;
mod reserve;
mod shard;
mod size;
mod source;

/// A number: its text, and the position that it stands for.
pub use bates_pattern::Number;
pub use error::{CloseError, TakeError};
pub use number::UnrenderedNumber;
pub use prefetched::Prefetched;
pub use size::Prefetch;
pub use source::{Lease, LeaseContent, Positions, Source};
