//! Gaps: positions that were granted and are no document's, each with a reason. Owns the account of a scope:
//! granted = issued + held + gaps + uncertain + rejected, and no position is in two of them.

mod account;
mod known;
mod machine;
mod positions;

use std::fmt;

use jiff::Timestamp;

use crate::range::{Lease, Ranges};
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;

pub use account::Account;
pub use known::{KnownFor, KnownRange, KnownScope, RangeKind};
pub use machine::Reconciled;
pub(crate) use positions::{AcceptedPositions, SavedPositions};
pub use positions::{Reading, Saved};

/// Why nobody has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Its document could not be delivered, and nobody has decided yet.
    OutboxDlq,
    /// Somebody decided that its document is not delivered.
    Abandoned,
    /// It was reserved, and not confirmed in time, or given up.
    Voided,
    /// It was issued, and no document is known that has it.
    UntrackedLoss,
    /// It was held by a process that crashed: whether it was used is not known.
    CrashSkip,
    /// It was held in memory, by a node or by a client, and given up unused.
    LeaseLost,
    /// It was granted by a commit whose outcome was learned too late: nobody was given it.
    Burned,
    /// An operator raised the cursor past it.
    FloorRaised,
    /// It was granted for a shared pool and never pushed: another filler was faster, or the server refused it.
    FillFenced,
    /// It was in a shared pool whose server forgot what was taken: whether somebody has it is not known.
    PoolInvalidated,
    /// Its document is dead or abandoned, and the outcome of a try is not known: the sink may have taken it.
    DeliveryUnknown,
}

impl Reason {
    /// All of them, those that leave no doubt first: where two are said of a position, the first counts.
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

    /// As users and stores write it.
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

    /// The reason of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// Whether somebody may have the number all the same.
    pub const fn is_uncertain(self) -> bool {
        matches!(self, Self::CrashSkip | Self::PoolInvalidated | Self::DeliveryUnknown)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Positions of which nobody has the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// Which.
    pub range: Lease,
    /// Why.
    pub reason: Reason,
}

impl Missing {
    /// Ranges that are missing for one reason.
    pub fn all(ranges: impl IntoIterator<Item = Lease>, reason: Reason) -> impl Iterator<Item = Self> {
        ranges.into_iter().map(move |range| Self { range, reason })
    }

    /// The same, ascending, and each position once: where two things are said of it, the one that leaves no doubt.
    pub fn each_once(missing: &[Self]) -> Vec<Self> {
        let (mut each, mut taken) = (Vec::new(), Ranges::default());
        for (reason, found) in account::by_reason(missing) {
            let new = found.without(&taken);
            each.extend(new.iter().map(|range| Self { range, reason }));
            taken = taken.and(&new);
        }
        each.sort_unstable();
        each
    }
}

/// A gap as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub place: Place,
    /// Which positions, and why.
    pub missing: Missing,
    /// When it was first seen.
    pub seen: Timestamp,
}

/// Which gaps. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapFilter {
    /// Those of a series.
    pub series: Option<SeriesName>,
    /// Those of a scope of any series.
    pub scope: Option<ScopeKey>,
}
