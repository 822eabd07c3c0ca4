//! The source of prefetched numbers.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bates_pattern::{Position, Scope};
use uuid::Uuid;

/// Leases numbers of one scope.
#[trait_variant::make(Send)]
pub trait Source: Send + Sync + 'static {
    /// Why a call failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Leases at least one number, and fewer than `count` only where the scope ends. The leases of `used` have ended, and
    /// all their numbers were used.
    async fn lease(&self, count: u64, used: Vec<Uuid>) -> Result<Lease, Self::Error>;

    /// Ends a lease. These positions of it were not used and never will be; all others were.
    async fn give_back(&self, lease: Uuid, unused: Vec<Positions>) -> Result<(), Self::Error>;

    /// Max time of the report when the buffer is closed.
    fn report_timeout(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Whether this process is a fork of the one that owns the source, which then gives nothing here.
    fn is_forked(&self) -> bool {
        false
    }

    /// The clock that decides whether dated numbers are still valid.
    fn now(&self) -> SystemTime;
}

/// Positions from the first to the last.
pub type Positions = RangeInclusive<Position>;

/// A lease.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Its id.
    pub id: Uuid,
    /// Its numbers.
    pub content: LeaseContent,
    /// How long its numbers are valid, from the request on; `None` for ever.
    pub valid_for: Option<Duration>,
}

/// Positions, or numbers that only the source can render.
#[derive(Clone, Debug)]
pub enum LeaseContent {
    /// Every position in these ranges is a number, rendered by the scope, which is the same in all answers.
    Ranges(Vec<Positions>, Arc<Scope>),
    /// Ascending positions with their numbers, and the ascending ranges around them, which hold rejected positions, too.
    Numbers(Vec<(Position, Box<str>)>, Vec<Positions>),
}
