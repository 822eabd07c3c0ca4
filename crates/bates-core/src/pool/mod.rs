//! Shared pools: lists of numbers on a server that may lose data, kept full for programs that take from them directly.
//!
//! Owns when a pool is filled, from which positions, and when it is renewed. What keeps numbers unique:
//! - a chunk is pushed only after a comparison with a marker beside the list, which moves with it;
//! - if the server forgets or rewinds, the epoch in the store moves on and the list is emptied before anything is pushed,
//!   because a marker is valid for one memory of the server alone;
//! - a filler that slept is refused if a later grant was pushed before.

mod error;
mod fill;
mod filler;
mod list;
mod machine;
mod settings;
mod watched;

pub use crate::ledger::{Pool, PoolSettlement, RenewRequest, ServerIdentity};
pub(crate) use error::FillResult;
pub use error::{FillError, FillOutcome};
pub use filler::{Filler, Reporter};
pub use list::{ListRefusal, ListStatus, PoolFuture, PushRequest, ServerStatus, SharedPool};
pub use machine::{PoolError, PoolStatus};
pub use settings::{FillAmount, PoolCounts, PoolSet, PoolSettings, ScopeMatcher};
