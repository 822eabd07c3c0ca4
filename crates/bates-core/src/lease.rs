//! Client leases: positions that a client takes in advance and hands out from its own memory.
//!
//! A client lease moves no cursor, and its positions never return, or a number that a client used could be granted again:
//! unused numbers are gaps, and what a crashed client held is uncertain. Only unique series have leases, because several
//! clients hand out at the same time.

use std::time::Duration;

use bates_pattern::Date;
use jiff::{Timestamp, Unit};
use uuid::Uuid;

use crate::audit::{By, Taking};
use crate::code::Code;
use crate::dispenser::Wanted;
use crate::error::IssueError;
use crate::gap::AcceptedPositions;
use crate::machine::{Machine, NextError, Numbers, Unclaimed};
use crate::range::{Lease, Ranges, Taken};
use crate::scope::{Place, ScopeName};
use crate::series::{Entry, OpenScope, Promise, SeriesName};
use crate::store::{Store, StoreError};

pub use crate::ledger::LeaseEnd;

/// After this time without word, a client has crashed or is cut off: what it used is unknown. Clients give back what
/// they have held for half of it.
pub const CLIENT_LEASE_SPAN: Duration = Duration::from_hours(24);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLease {
    pub id: Uuid,
    pub place: Place,
    /// Ascending, including positions that the rules reject.
    pub ranges: Vec<Lease>,
    /// The name of a token, or an address.
    pub who: Box<str>,
    /// To the millisecond.
    pub at: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientLeaseFilter {
    pub series: Option<SeriesName>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseRefused {
    #[error(
        "series {series:?} is {promise}: its numbers cannot be held in advance, only those of a unique series"
    )]
    NotUnique { series: SeriesName, promise: Promise },
    #[error(transparent)]
    Next(#[from] NextError),
}

impl LeaseRefused {
    pub const fn code(&self) -> Code {
        match self {
            Self::NotUnique { .. } => Code::NOT_UNIQUE,
            Self::Next(error) => error.code(),
        }
    }
}

/// Nothing was written, unless the store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndRefused {
    #[error("there is no lease {0}, or it has ended before")]
    Unknown(Uuid),
    #[error(
        "positions {} to {} are not wholly within lease {lease}, which holds {}: nothing was returned and the lease stays open",
        returned.from(), returned.to() - 1, listed(leased)
    )]
    Outside {
        lease: Uuid,
        returned: Lease,
        /// Ascending.
        leased: Vec<Lease>,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EndRefused {
    pub const fn code(&self) -> Code {
        match self {
            Self::Unknown(_) => Code::UNKNOWN_LEASE,
            Self::Outside { .. } => Code::NOT_OF_LEASE,
            Self::Store(error) => error.code(),
        }
    }
}

const LISTED_MAX: usize = 5;

fn listed(ranges: &[Lease]) -> String {
    let named = ranges.iter().take(LISTED_MAX).map(|range| format!("{} to {}", range.from(), range.to() - 1));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if let Some(more) = ranges.len().checked_sub(LISTED_MAX + 1) {
        text = format!("{text} and {} more ranges", more + 1);
    }
    text
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseAsk {
    pub count: u64,
    /// The limit where this process renders them.
    pub numbers_max: u64,
    /// Whether numbers are wanted even where the client could render positions.
    pub as_numbers: bool,
    /// Leases that the client has used up: they end.
    pub used: Vec<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    pub id: Uuid,
    pub what: Advance,
    /// After this time the numbers belong to a day that is over; `None` if they never expire.
    pub good_for: Option<Duration>,
}

/// Positions that a client can render, or numbers that it cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advance {
    Ranges(Vec<Lease>),
    /// For a series that is shuffled, rejects, or shows a date: the key and the rules stay here. The ranges include the
    /// positions that the rules reject.
    Numbers(Numbers, Vec<Lease>),
}

impl<S: Store> Machine<S> {
    /// Numbers of a scope in advance, fewer where the space ends. The client owns them from now on.
    pub async fn lease(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
        ask: LeaseAsk,
        by: By<'_>,
    ) -> Result<Leased, LeaseRefused> {
        let promise = entry.series.promise();
        if promise != Promise::Unique {
            return Err(LeaseRefused::NotUnique { series: entry.series.name().clone(), promise });
        }
        let now = self.runtime.now();
        let open = entry.scope(name, || now).map_err(NextError::from)?;
        let (id, what) = if ask.as_numbers || entry.is_rendered_here(name.date) {
            let unclaimed = self.draw(&open, ask.count.min(ask.numbers_max), true).await?;
            let drawn = unclaimed.get();
            let ranges: Vec<Lease> = drawn.pieces.iter().map(|piece| piece.range).collect();
            if self.is_audited(entry) {
                self.record(&open.place, drawn, by).await.map_err(NextError::from)?;
            }
            let id = self.write_lease(&open.place, ranges.clone(), ask.used, by.at(now)).await?;
            (id, Advance::Numbers(unclaimed.claim().numbers, ranges))
        } else {
            let taken = self.up_to(&open, ask.count).await.map_err(NextError::from)?;
            let unclaimed = Unclaimed::new(self, &open.place, taken);
            self.record_taken(&open, unclaimed.get(), by).await.map_err(NextError::from)?;
            let ranges: Vec<Lease> = unclaimed.get().leases().collect();
            let id = self.write_lease(&open.place, ranges.clone(), ask.used, by.at(now)).await?;
            drop(unclaimed.claim());
            (id, Advance::Ranges(ranges))
        };
        entry.counts.add_issued(match &what {
            Advance::Ranges(ranges) => ranges.iter().map(|range| range.count()).sum(),
            Advance::Numbers(numbers, _) => numbers.len() as u64,
        });
        Ok(Leased { id, what, good_for: open.good_for(name, now) })
    }

    /// Takes as many of the positions as are left.
    async fn up_to(&self, open: &OpenScope<'_>, mut count: u64) -> Result<Taken, IssueError> {
        loop {
            match self.positions(open, Wanted::Any(count)).await {
                Err(error) if (1..count).contains(&error.left()) => count = error.left(),
                answer => return answer,
            }
        }
    }

    async fn write_lease(
        &self,
        place: &Place,
        ranges: Vec<Lease>,
        used: Vec<Uuid>,
        Taking { who, at, .. }: Taking,
    ) -> Result<Uuid, NextError> {
        let id = self.runtime.new_id();
        let at = at.round(Unit::Millisecond).unwrap_or(at);
        let lease = ClientLease { id, place: place.clone(), ranges, who, at };
        self.store().put_client_lease(lease, used).await.map_err(IssueError::of_store(place))?;
        Ok(id)
    }

    /// Ends a client's lease: unused positions are gaps, all others were used. Returns how many numbers are gaps.
    pub async fn end_lease(&self, id: Uuid, unused: Vec<Lease>) -> Result<u64, EndRefused> {
        match self.store().end_client_lease(id, unused).await? {
            LeaseEnd::Ended { place, lost } => Ok(self.numbers_of(&place, &lost)),
            LeaseEnd::Outside { returned, leased } => {
                Err(EndRefused::Outside { lease: id, returned, leased })
            }
            LeaseEnd::Unknown => Err(EndRefused::Unknown(id)),
        }
    }

    fn numbers_of(&self, place: &Place, positions: &Ranges) -> u64 {
        let Some(entry) = self.named(place.series.as_str()) else { return positions.count() };
        let accepted = AcceptedPositions::of(&entry, &place.scope);
        positions.iter().map(|range| accepted.within(range).count()).sum()
    }

    /// In the order of the ids, after `after`, at most `limit`.
    pub async fn leases(
        &self,
        of: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<ClientLease>, StoreError> {
        self.store().client_leases(of, after, limit).await
    }
}

impl Entry {
    fn is_rendered_here(&self, date: Option<Date>) -> bool {
        let pattern = self.series.pattern();
        pattern.is_shuffled() || !pattern.reject().is_empty() || pattern.needs_date() && date.is_none()
    }
}

impl OpenScope<'_> {
    /// How long numbers of today are valid: until the day ends, if tomorrow's differ.
    fn good_for(&self, name: ScopeName<'_>, now: Timestamp) -> Option<Duration> {
        if name.date.is_some() || !self.entry.series.pattern().needs_date() {
            return None;
        }
        let today = now.to_zoned(self.entry.time_zone.clone());
        let tomorrow = today.tomorrow().and_then(|day| day.start_of_day()).ok()?;
        match self.entry.scope(ScopeName { date: Some(tomorrow.date()), ..name }, || now) {
            Ok(next) if next.place == self.place && next.scope.reads_as(&self.scope) => None,
            _ => Some(Duration::try_from(now.duration_until(tomorrow.timestamp())).unwrap_or_default()),
        }
    }
}
