//! Gaps: positions that were granted and belong to no document, each with a reason. Owns the balance of a scope:
//! granted = issued + held + gaps + uncertain + rejected, and no position is in two of them.

mod documents;
mod machine;
mod reconciliation;
mod scope_record;

use std::fmt;

use jiff::Timestamp;

use crate::range::{PositionRange, RangeSet};
use crate::scope::{ScopeId, ScopeKey};
use crate::series::SeriesName;

pub(crate) use documents::{AcceptedPositions, DocumentPositions};
pub use documents::{DocumentSource, ReadNumbersFuture};
pub use machine::ReconcileReport;
pub use reconciliation::Reconciliation;
pub use scope_record::{RangeKind, RangeRecord, ReadPurpose, ScopeRecord};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GapReason {
    /// Its document could not be delivered, and no operator has decided yet.
    OutboxDlq,
    /// An operator decided not to deliver its document.
    Abandoned,
    /// Its reservation was given up, or not confirmed in time.
    Voided,
    /// It was issued, and no known document has it.
    UntrackedLoss,
    /// A process that crashed held it, and may have used it.
    CrashSkip,
    /// A node or a client held it in memory and gave it up unused.
    LeaseLost,
    /// The outcome of its commit was learned too late: no caller got it.
    Burned,
    /// An operator raised the cursor past it.
    FloorRaised,
    /// It was granted for a shared pool and never pushed: another filler was faster, or the server refused.
    FillFenced,
    /// It was in a shared pool whose server lost data: a caller may have taken it.
    PoolInvalidated,
    /// Its document is dead or abandoned, and the outcome of an attempt is unknown: the sink may have taken it.
    DeliveryUnknown,
}

impl GapReason {
    /// Certain reasons first: where two apply to a position, the first counts.
    pub const ALL: [Self; 11] = [
        Self::OutboxDlq,
        Self::Abandoned,
        Self::Voided,
        Self::UntrackedLoss,
        Self::LeaseLost,
        Self::Burned,
        Self::FloorRaised,
        Self::FillFenced,
        Self::CrashSkip,
        Self::PoolInvalidated,
        Self::DeliveryUnknown,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::OutboxDlq => "outbox_dlq",
            Self::Abandoned => "abandoned",
            Self::Voided => "voided",
            Self::UntrackedLoss => "untracked_loss",
            Self::CrashSkip => "crash_skip",
            Self::LeaseLost => "lease_lost",
            Self::Burned => "burned",
            Self::FloorRaised => "floor_raised",
            Self::FillFenced => "fill_fenced",
            Self::PoolInvalidated => "pool_invalidated",
            Self::DeliveryUnknown => "delivery_unknown",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// Whether the number may have been used.
    pub const fn is_uncertain(self) -> bool {
        matches!(self, Self::CrashSkip | Self::PoolInvalidated | Self::DeliveryUnknown)
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingRange {
    pub range: PositionRange,
    pub reason: GapReason,
}

impl MissingRange {
    pub fn all(
        ranges: impl IntoIterator<Item = PositionRange>,
        reason: GapReason,
    ) -> impl Iterator<Item = Self> {
        ranges.into_iter().map(move |range| Self { range, reason })
    }

    /// The same, ascending, each position once, for the first of its reasons in [`GapReason::ALL`].
    pub fn each_once(missing: &[Self]) -> Vec<Self> {
        let mut each = Vec::new();
        Self::add_new(&mut each, &mut RangeSet::default(), missing);
        each.sort_unstable();
        each
    }

    /// Adds to `missing` the known positions that are not in `taken` yet, and adds them to `taken`.
    fn add_new(missing: &mut Vec<Self>, taken: &mut RangeSet, known: &[Self]) {
        for reason in GapReason::ALL {
            let found = known.iter().filter(|known| known.reason == reason).map(|known| known.range);
            let new = RangeSet::of(found).difference(taken);
            if !new.is_empty() {
                missing.extend(Self::all(new.iter(), reason));
                *taken = taken.union(&new);
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub scope_id: ScopeId,
    pub missing: MissingRange,
    /// When a reconciliation first found it.
    pub first_seen: Timestamp,
}

/// `None` matches every gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapFilter {
    pub series: Option<SeriesName>,
    pub scope: Option<ScopeKey>,
}
