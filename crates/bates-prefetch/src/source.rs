//! Where numbers come from.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bates_pattern::{Position, Scope};
use uuid::Uuid;

/// Leases numbers of one scope.
#[trait_variant::make(Send)]
pub trait Source: Send + Sync + 'static {
    /// Why there are none.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Numbers that are the caller's from now on, at least one; fewer than asked for where the scope ends. Those leases
    /// of `used` that it gave before have ended, and everything of them was used.
    async fn lease(&self, count: u64, used: Vec<Uuid>) -> Result<Given, Self::Error>;

    /// A lease has ended. These positions of it were not used and never will be; all others were.
    async fn give_back(&self, lease: Uuid, unused: Vec<Positions>) -> Result<(), Self::Error>;

    /// How long a report of everything that is unused may take when the buffer is closed.
    fn report_time(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Whether this process was forked from the one that the source belongs to: then it gives nothing here.
    fn is_forked(&self) -> bool {
        false
    }

    /// The clock that decides whether dated numbers are still good.
    fn now(&self) -> SystemTime;
}

/// Positions from the first to the last.
pub type Positions = RangeInclusive<Position>;

/// What was leased.
#[derive(Clone, Debug)]
pub struct Given {
    /// By what it is named when it ends.
    pub lease: Uuid,
    /// What it holds.
    pub numbers: Numbers,
    /// For how long its numbers are good, from when they were asked for; `None` for ever.
    pub good_for: Option<Duration>,
}

/// Positions, or numbers that only the source could write.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// Every position in these ranges is a number, which the scope renders. It is the same scope in all answers.
    Positions(Vec<Positions>, Arc<Scope>),
    /// Positions, ascending, with their numbers; and the ranges that they lie in, ascending, with positions that are no
    /// numbers.
    Written(Vec<(Position, Box<str>)>, Vec<Positions>),
}
