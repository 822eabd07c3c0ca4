//! Client leases: positions that a client takes in advance and hands out from its own memory.
//!
//! The positions of a client lease never return to the cursor, or a number that a client used could be granted again:
//! unused numbers are gaps, and the numbers of a crashed client are uncertain. Only unique series have leases, because
//! several clients hand out at the same time.

use std::time::Duration;

use bates_pattern::Date;
use jiff::{Timestamp, Unit};
use uuid::Uuid;

use crate::audit::{Actor, AuditStamp};
use crate::caller::SeriesSet;
use crate::code::ErrorCode;
use crate::dispenser::{TakeRequest, TakeResult};
use crate::error::IssueError;
use crate::gap::AcceptedPositions;
use crate::machine::{Machine, NextError, Numbers, UnclaimedPositions};
use crate::range::{PositionRange, RangeSet};
use crate::scope::{ScopeId, ScopeParams};
use crate::series::{OpenScope, Promise, SeriesEntry, SeriesName};
use crate::store::{Store, StoreError, StoreResult};

pub use crate::ledger::LeaseEnd;

/// After this time without a report, a client has crashed or lost its connection, and its used numbers are unknown.
/// Clients return numbers that they have held for half of it.
pub const CLIENT_LEASE_TTL: Duration = Duration::from_hours(24);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLease {
    pub id: Uuid,
    pub scope_id: ScopeId,
    /// Ascending, including positions that the rules reject.
    pub ranges: Vec<PositionRange>,
    /// The name of a token, or an address.
    pub caller: Box<str>,
    /// To the millisecond.
    pub at: Timestamp,
}

/// Whose leases a caller may end. A token may end only its own; a caller without one has every right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaseOwner {
    #[default]
    Any,
    Caller(Box<str>),
}

/// Leases that are used up: those of the owner end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedLeases {
    pub ids: Vec<Uuid>,
    pub owner: LeaseOwner,
}

impl LeaseOwner {
    /// The only caller whose leases may be ended; `None` for any.
    pub fn caller(&self) -> Option<&str> {
        match self {
            Self::Any => None,
            Self::Caller(caller) => Some(caller),
        }
    }

    pub fn owns(&self, lease: &ClientLease) -> bool {
        self.caller().is_none_or(|caller| *lease.caller == *caller)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientLeaseFilter {
    /// Only series in this set.
    pub among: SeriesSet,
    pub series: Option<SeriesName>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    #[error("series {series:?} is {promise}: only numbers of a unique series can be held in advance")]
    NotUnique { series: SeriesName, promise: Promise },
    #[error(transparent)]
    Next(#[from] NextError),
}

impl LeaseError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NotUnique { .. } => ErrorCode::NOT_UNIQUE,
            Self::Next(error) => error.code(),
        }
    }
}

/// Nothing was written, unless the store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndLeaseError {
    #[error("there is no lease {0}, or it has ended before")]
    Unknown(Uuid),
    #[error(
        "positions {} to {} are not wholly within lease {lease}, which holds {}: nothing was returned and the lease stays open",
        returned.from(), returned.to() - 1, listed(leased)
    )]
    Outside { lease: Uuid, returned: PositionRange, leased: Vec<PositionRange> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EndLeaseError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown(_) => ErrorCode::UNKNOWN_LEASE,
            Self::Outside { .. } => ErrorCode::NOT_OF_LEASE,
            Self::Store(error) => error.code(),
        }
    }
}

const LISTED_MAX: usize = 5;

fn listed(ranges: &[PositionRange]) -> String {
    let named = ranges.iter().take(LISTED_MAX).map(|range| format!("{} to {}", range.from(), range.to() - 1));
    let text = named.collect::<Vec<_>>().join(", ");
    match ranges.len().saturating_sub(LISTED_MAX) {
        0 => text,
        more => format!("{text} and {more} more ranges"),
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRequest {
    pub count: u64,
    /// The limit if this process renders them.
    pub numbers_max: u64,
    /// Whether numbers are wanted even where the client could render positions.
    pub as_numbers: bool,
    /// Leases that the client has used up: those of `owner` end.
    pub used: Vec<Uuid>,
    pub owner: LeaseOwner,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseGrant {
    pub id: Uuid,
    pub content: LeaseContent,
    /// How long until the day of the numbers ends; `None` if they never expire.
    pub valid_for: Option<Duration>,
}

/// Positions that a client can render, or numbers that it cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseContent {
    Ranges(Vec<PositionRange>),
    /// For a series that is shuffled, rejects, or shows a date: the key and the rules stay here. The ranges include the
    /// positions that the rules reject.
    Numbers(Numbers, Vec<PositionRange>),
}

impl<S: Store> Machine<S> {
    /// Numbers of a scope in advance, fewer where the space ends. The client owns them from now on.
    pub async fn lease(
        &self,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
        request: LeaseRequest,
        by: Actor<'_>,
    ) -> Result<LeaseGrant, LeaseError> {
        let promise = entry.series.promise();
        if promise != Promise::Unique {
            return Err(LeaseError::NotUnique { series: entry.series.name().clone(), promise });
        }
        let now = self.runtime.now();
        let open = entry.open_scope(params, || now).map_err(NextError::from)?;
        let LeaseRequest { count, numbers_max, as_numbers, used, owner } = request;
        let used = UsedLeases { ids: used, owner };
        let (id, content) = if as_numbers || entry.leases_as_numbers(params.date) {
            let unclaimed = self.take_numbers(&open, count.min(numbers_max), true).await?;
            let taken = unclaimed.get();
            let ranges: Vec<PositionRange> = taken.ranges.iter().map(|piece| piece.range).collect();
            if self.is_audited(entry) {
                self.record_numbers(&open.scope_id, taken, by).await.map_err(NextError::from)?;
            }
            let id = self.write_lease(&open.scope_id, ranges.clone(), used, by.stamp(now)).await?;
            (id, LeaseContent::Numbers(unclaimed.claim().numbers, ranges))
        } else {
            let taken = self.take_up_to(&open, count).await.map_err(NextError::from)?;
            let unclaimed = UnclaimedPositions::new(self, &open.scope_id, taken);
            self.record_positions(&open, unclaimed.get(), by).await.map_err(NextError::from)?;
            let ranges: Vec<PositionRange> = unclaimed.get().ranges().collect();
            let id = self.write_lease(&open.scope_id, ranges.clone(), used, by.stamp(now)).await?;
            drop(unclaimed.claim());
            (id, LeaseContent::Ranges(ranges))
        };
        entry.counts.add_issued(match &content {
            LeaseContent::Ranges(ranges) => ranges.iter().map(|range| range.count()).sum(),
            LeaseContent::Numbers(numbers, _) => numbers.len() as u64,
        });
        Ok(LeaseGrant { id, content, valid_for: open.valid_for(params, now) })
    }

    /// Takes `count` positions, or as many as are left.
    async fn take_up_to(&self, open: &OpenScope<'_>, mut count: u64) -> TakeResult {
        loop {
            match self.take_positions(open, TakeRequest::Any(count)).await {
                Err(error) if (1..count).contains(&error.left()) => count = error.left(),
                answer => return answer,
            }
        }
    }

    async fn write_lease(
        &self,
        scope_id: &ScopeId,
        ranges: Vec<PositionRange>,
        used: UsedLeases,
        AuditStamp { caller, at, .. }: AuditStamp,
    ) -> Result<Uuid, NextError> {
        let id = self.runtime.new_id();
        let at = at.round(Unit::Millisecond).unwrap_or(at);
        let lease = ClientLease { id, scope_id: scope_id.clone(), ranges, caller, at };
        self.store().put_client_lease(lease, used).await.map_err(IssueError::from_store(scope_id))?;
        Ok(id)
    }

    /// Ends a client's lease: unused positions are gaps, all others were used. Returns how many numbers are gaps.
    pub async fn end_lease(
        &self,
        lease: Uuid,
        unused: Vec<PositionRange>,
        owner: LeaseOwner,
    ) -> Result<u64, EndLeaseError> {
        match self.store().end_client_lease(lease, unused, owner).await? {
            LeaseEnd::Ended { scope_id, lost } => Ok(self.numbers_of(&scope_id, &lost)),
            LeaseEnd::Outside { returned, leased } => Err(EndLeaseError::Outside { lease, returned, leased }),
            LeaseEnd::Unknown => Err(EndLeaseError::Unknown(lease)),
        }
    }

    fn numbers_of(&self, scope_id: &ScopeId, positions: &RangeSet) -> u64 {
        let Some(entry) = self.series(scope_id.series.as_str()) else { return positions.count() };
        let accepted = AcceptedPositions::of(&entry, &scope_id.scope);
        positions.iter().map(|range| accepted.within(range).count()).sum()
    }

    /// In the order of the ids, after `after`, at most `limit`.
    pub async fn leases(
        &self,
        of: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<ClientLease>> {
        self.store().client_leases(of, after, limit).await
    }
}

impl SeriesEntry {
    /// Whether a client cannot render the numbers of a lease by itself, and gets them as texts.
    pub fn leases_as_numbers(&self, date: Option<Date>) -> bool {
        let pattern = self.series.pattern();
        pattern.is_shuffled() || !pattern.reject().is_empty() || pattern.needs_date() && date.is_none()
    }
}

impl OpenScope<'_> {
    /// How long numbers of today are valid: until the day ends, if tomorrow's differ.
    fn valid_for(&self, params: ScopeParams<'_>, now: Timestamp) -> Option<Duration> {
        if params.date.is_some() || !self.entry.series.pattern().needs_date() {
            return None;
        }
        let today = now.to_zoned(self.entry.time_zone.clone());
        let tomorrow = today.tomorrow().and_then(|day| day.start_of_day()).ok()?;
        match self.entry.open_scope(ScopeParams { date: Some(tomorrow.date()), ..params }, || now) {
            Ok(next) if next.scope_id == self.scope_id && next.scope.renders_like(&self.scope) => None,
            _ => Some(Duration::try_from(now.duration_until(tomorrow.timestamp())).unwrap_or_default()),
        }
    }
}
