//! Shared pools: lists of numbers on a server that may lose data, kept full for programs that take from them directly.
//!
//! Owns when a pool is filled, from which positions, and when it is renewed. What keeps numbers unique:
//! - beside each list lies a marker: the epoch, and how far numbers were pushed. A push compares it and moves it in one step;
//! - an epoch belongs to one [`ServerIdentity`]. If the server loses data or goes back to an older state, the epoch in the
//!   store is raised, and the list is emptied before anything is pushed;
//! - a filler that was delayed is refused if a later grant was pushed before.

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
pub use list::{ListRefusal, ListStatus, PoolFuture, PoolServer, PushRequest, ServerStatus};
pub use machine::{PoolError, PoolStatus};
pub use settings::{
    FillAmount, LISTS_MAX, PoolCounts, PoolSet, PoolSettings, ScopeMatcher, offered_pool_key,
};
