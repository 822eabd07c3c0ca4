//! Where numbers come from.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bates_pattern::Scope;
use uuid::Uuid;

/// Leases numbers of one scope.
pub trait Source: Send + Sync + 'static {
    /// Why there are none.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Numbers that are the caller's from now on, at least one; fewer than asked for where the scope ends. Those leases
    /// of `used` that it gave before have ended, and everything of them was used.
    fn lease(&self, count: u64, used: Vec<Uuid>) -> impl Future<Output = Result<Given, Self::Error>> + Send;

    /// A lease has ended. These positions of it were not used and never will be; all others were.
    fn give_back(
        &self,
        lease: Uuid,
        unused: Vec<Range<u64>>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

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
    Positions(Vec<Range<u64>>, Arc<Scope>),
    /// Positions, ascending, with their numbers; and the ranges that they lie in, ascending, with positions that are no
    /// numbers.
    Written(Vec<(u64, Box<str>)>, Vec<Range<u64>>),
}
