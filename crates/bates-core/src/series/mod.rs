//! A series: a named numbering, and its limits. A *description* (the user's text) is read into a [`SeriesSpec`]. The part
//! that decides texts is its [`Definition`], which the store pins. A [`SeriesEntry`] is the open series of a machine.

mod change;
mod definition;
mod entry;
mod floors;
mod name;
mod open;
mod registry;
mod spec;
mod sync;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bates_pattern::{Pattern, Position};
use tokio::sync::OnceCell;

use crate::ledger::{GrantPurpose, GrantRequest, hold_max};
use crate::scope::{ScopeId, ScopeKey};

pub use change::{CreateOutcome, SERIES_MAX};
pub use definition::{Definition, DescriptionChange, PinOutcome, Promise, PromiseChange, PromiseDecision};
pub(crate) use entry::{AcceptedShare, OpenScope};
pub use entry::{ListValue, SeriesEntry, SeriesOrigin};
pub use floors::FloorPlan;
pub(crate) use floors::floor_of;
pub use name::{SeriesName, SeriesNameError};
pub(crate) use open::open_all;
pub use registry::Registry;
pub(crate) use spec::MachineResult;
pub use spec::{MachineError, SeriesSpec};
pub(crate) use sync::SeriesSync;
pub use sync::{SpecReader, SyncReport};

/// The largest allowed `lease_max`: a crash must not skip a whole space.
const LEASE_MAX: u64 = 1_000_000_000;

/// The largest allowed `waiters_max`: each waiting caller needs memory.
const WAITERS_MAX: usize = 1_000_000;

/// The limits of a series. In a description they count numbers; an open series has them in positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Positions in the first range of a scope. Each later range is eight times as large as the last, up to `lease_max`.
    pub lease_min: u64,
    /// Positions in the largest range. It bounds the loss in a crash: see [`Limits::crash_skip_max`].
    pub lease_max: u64,
    /// When this share of a range is left, the next one is fetched. If it is too low, callers wait for the store.
    pub watermark_percent: u8,
    /// How many callers may wait for one scope. More are refused as busy, so memory is bounded.
    pub waiters_max: usize,
    /// How many scopes a series may have. A careless client must not fill the disk.
    pub scopes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lease_min: 32,
            lease_max: 65_536,
            watermark_percent: 25,
            waiters_max: 10_000,
            scopes_max: 10_000_000,
        }
    }
}

impl Limits {
    /// The most positions of a scope that one process holds in memory, and that its crash skips: the largest range, and
    /// the rest of the range before it when it was fetched. With the default watermark that is 1.25 times `lease_max`.
    /// On top come positions fetched for callers that wait or have gone, and pieces between adopted positions that are
    /// too short for a run (`INCRBY`). Shared pools and client leases hold positions of their own.
    pub const fn crash_skip_max(&self) -> u64 {
        self.lease_max.saturating_add(self.watermark(self.lease_max))
    }

    /// The limits that hold in a scope with this capacity: a range is at most a share of the rest of the scope.
    #[must_use]
    pub fn within(self, capacity: u64) -> Self {
        let range_max = hold_max(capacity);
        Self { lease_min: self.lease_min.min(range_max), lease_max: self.lease_max.min(range_max), ..self }
    }

    /// How many positions of a range are left when the next one is fetched.
    pub(crate) const fn watermark(&self, range_count: u64) -> u64 {
        let percent = self.watermark_percent as u64;
        range_count / 100 * percent + range_count % 100 * percent / 100
    }

    pub fn check(&self) -> Result<(), &'static str> {
        let Self { lease_min, lease_max, watermark_percent, waiters_max, scopes_max } = *self;
        match () {
            () if lease_min == 0 => Err("lease_min is at least 1"),
            () if lease_max < lease_min => Err("lease_max is below lease_min"),
            () if lease_max > LEASE_MAX => Err("lease_max is at most 1,000,000,000"),
            () if watermark_percent > 100 => Err("watermark_percent is at most 100"),
            () if waiters_max == 0 || waiters_max > WAITERS_MAX => Err("waiters_max is 1 to 1,000,000"),
            () if scopes_max == 0 => Err("scopes_max is at least 1"),
            () => Ok(()),
        }
    }
}

/// A named numbering: pattern, promise and limits. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Series(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: SeriesName,
    pattern: Pattern,
    promise: Promise,
    start: Position,
    limits: Limits,
    /// Set once, when the series is retired or another description takes its place.
    is_retired: AtomicBool,
    caching: Arc<Caching>,
}

/// Whether numbers of a series may be held in memory. All descriptions of one name share it: in an ordered series, a
/// call that began under an earlier description may still be granted a number past those that a later one would hold.
#[derive(Debug, Default)]
pub(crate) struct Caching {
    /// Set once, when nothing may be held any more.
    is_stopped: AtomicBool,
    /// Set when nothing is held any more.
    has_emptied: OnceCell<()>,
}

impl Caching {
    /// For a series that never holds anything.
    pub(crate) fn stopped() -> Self {
        Self { is_stopped: AtomicBool::new(true), has_emptied: OnceCell::new_with(Some(())) }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Forbids holding, and runs `empty` to release all held positions. On return, nothing is held.
    pub(crate) async fn stop(&self, empty: impl Future<Output = ()>) {
        let emptying = async {
            self.is_stopped.store(true, Ordering::Release);
            empty.await;
        };
        self.has_emptied.get_or_init(|| emptying).await;
    }
}

impl Series {
    pub fn new(
        name: SeriesName,
        pattern: Pattern,
        promise: Promise,
        start: Position,
        limits: Limits,
    ) -> Self {
        let (is_retired, caching) = (AtomicBool::new(false), Arc::default());
        Self(Arc::new(Inner { name, pattern, promise, start, limits, is_retired, caching }))
    }

    /// Shares the caching state of the earlier series of its name.
    pub(crate) fn with_caching(mut self, caching: Arc<Caching>) -> Self {
        Arc::get_mut(&mut self.0).expect("a new series has one owner").caching = caching;
        self
    }

    pub fn name(&self) -> &SeriesName {
        &self.0.name
    }

    pub fn pattern(&self) -> &Pattern {
        &self.0.pattern
    }

    pub fn promise(&self) -> Promise {
        self.0.promise
    }

    /// The first position handed out in each scope.
    pub fn start(&self) -> Position {
        self.0.start
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Whether both have the same name, and so the same scopes.
    #[inline]
    pub(crate) fn has_name_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.name == other.0.name
    }

    /// Whether both are the same description, not only the same name.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn retire(&self) {
        self.0.is_retired.store(true, Ordering::Release);
    }

    pub(crate) fn caching(&self) -> &Arc<Caching> {
        &self.0.caching
    }

    #[inline]
    pub(crate) fn is_uncached(&self) -> bool {
        self.0.caching.is_stopped()
    }

    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.0.is_retired.load(Ordering::Acquire)
    }

    /// The first position past the last one of each scope.
    pub fn end(&self) -> u64 {
        self.0.pattern.last().value() + 1
    }

    pub(crate) fn scope_id(&self, scope: &ScopeKey) -> ScopeId {
        ScopeId { series: self.0.name.clone(), scope: scope.clone() }
    }

    pub(crate) fn grant_request(&self, scope_id: ScopeId, count: u64, purpose: GrantPurpose) -> GrantRequest {
        GrantRequest {
            scope_id,
            count,
            count_needed: count,
            start: self.0.start.value(),
            end: self.end(),
            scopes_max: self.0.limits.scopes_max,
            purpose,
            promise: Some(self.0.promise),
            held_from: None,
        }
    }
}
