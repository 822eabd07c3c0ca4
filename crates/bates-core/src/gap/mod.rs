//! Gaps: positions that the cursor has passed and that are not in use, each with a reason. Every position below the
//! cursor is one of: issued, held, adopted, a gap (certain or uncertain), or rejected by the rules.

mod documents;
mod machine;
mod scope_positions;
mod scope_record;

use jiff::Timestamp;

use crate::caller::SeriesSet;
use crate::named::named;
use crate::range::{PositionRange, RangeSet};
use crate::scope::{ScopeFilter, ScopeId};
use crate::series::SeriesName;

pub(crate) use documents::{AcceptedPositions, DocumentPositions};
pub use documents::{DocumentSource, ReadNumbersFuture};
pub use machine::ReconcileReport;
pub use scope_positions::ScopePositions;
pub use scope_record::{RangeKind, RangeRecord, ReadPurpose, ScopeRecord};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GapReason {
    /// All attempts to deliver its document failed, and no operator has decided yet.
    OutboxDlq,
    /// An operator decided not to deliver its document.
    Abandoned,
    /// The caller voided its reservation, or did not confirm it in time.
    Voided,
    /// It was issued, but no known document has it.
    UntrackedLoss,
    /// A process that crashed held it, and may have used it.
    CrashSkip,
    /// A node or a client held it in memory and gave it up unused.
    LeaseLost,
    /// It was taken, but no caller got it: it stopped waiting, or a write failed or was resolved too late.
    Burned,
    /// An operator raised the cursor past it.
    FloorRaised,
    /// It was granted for a shared pool but not pushed: another filler was faster, or the Redis server refused.
    FillFenced,
    /// It was in a shared pool whose Redis server lost data: a caller may have taken it.
    PoolInvalidated,
    /// Its document is dead or abandoned, and the outcome of an attempt is unknown: the sink may have taken it.
    DeliveryUnknown,
}

// Certain reasons first: if two apply to a position, the first counts.
named!(GapReason {
    OutboxDlq = "outbox_dlq",
    Abandoned = "abandoned",
    Voided = "voided",
    UntrackedLoss = "untracked_loss",
    LeaseLost = "lease_lost",
    Burned = "burned",
    FloorRaised = "floor_raised",
    FillFenced = "fill_fenced",
    CrashSkip = "crash_skip",
    PoolInvalidated = "pool_invalidated",
    DeliveryUnknown = "delivery_unknown",
});

impl GapReason {
    /// Whether the position belonged to a document or a reservation.
    pub(crate) const fn is_of_document(self) -> bool {
        matches!(self, Self::OutboxDlq | Self::Abandoned | Self::Voided | Self::DeliveryUnknown)
    }

    /// Whether the number may have been used.
    pub const fn is_uncertain(self) -> bool {
        matches!(self, Self::CrashSkip | Self::PoolInvalidated | Self::DeliveryUnknown)
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

    /// Disjoint ranges in ascending order. A position with several reasons keeps the first one in [`GapReason::ALL`].
    pub fn disjoint(missing: &[Self]) -> Vec<Self> {
        let mut disjoint = Vec::new();
        Self::add_new(&mut disjoint, &mut RangeSet::default(), missing);
        disjoint.sort_unstable();
        disjoint
    }

    /// Adds to `missing` those positions of `known` that are not in `excluded`, and adds them to `excluded`.
    fn add_new(missing: &mut Vec<Self>, excluded: &mut RangeSet, known: &[Self]) {
        for reason in GapReason::ALL {
            let found = known.iter().filter(|known| known.reason == reason).map(|known| known.range);
            let new = RangeSet::of(found).difference(excluded);
            if !new.is_empty() {
                missing.extend(Self::all(new.iter(), reason));
                *excluded = excluded.union(&new);
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

/// A field that is `None` matches every gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapFilter {
    /// Only series in this set.
    pub among: SeriesSet,
    pub series: Option<SeriesName>,
    pub scope: Option<ScopeFilter>,
}
