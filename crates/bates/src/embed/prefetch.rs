//! Prefetched numbers: leased from the machine, and taken from memory with one atomic subtraction.

use std::sync::Arc;
use std::time::SystemTime;

use bates_core::{
    Actor, EndLeaseError, LeaseContent, LeaseGrant, LeaseRequest, NextError, PositionRange, ScopeParams,
};
use bates_pattern::Position;
use bates_prefetch as prefetch;
use bates_prefetch::{Lease, Positions, Prefetch, Source};
use uuid::Uuid;

use super::error::Result;
use super::{Error, Numbering};

/// Prefetched numbers of one scope. Made by [`Numbering::prefetch`]. It keeps the folder open: close or drop it before
/// [`Bates`](crate::Bates).
pub type Prefetched = bates_prefetch::Prefetched<Leases>;

/// The source of prefetched numbers: leases of one scope of the machine.
pub struct Leases(Numbering);

const NUMBERS_MAX: u64 = 100_000;

impl Numbering {
    /// Prefetches numbers of the scope into memory: this many at first, and up to a hundred times as many while they are
    /// used up within a second, unless a [`Prefetch`] says otherwise. The series must be `unique`, or calls fail. Unused
    /// numbers become gaps when the last clone is closed or dropped, or in a crash.
    pub fn prefetch(&self, prefetch: impl Into<Prefetch>) -> Prefetched {
        Prefetched::new(Leases(self.clone()), prefetch.into(), &self.runtime)
    }
}

impl Source for Leases {
    type Error = Error;

    async fn lease(&self, count: u64, used: Vec<Uuid>) -> Result<Lease> {
        let Self(numbering) = self;
        let scope = ScopeParams { parameters: &numbering.parameters(), date: numbering.date };
        let request = LeaseRequest {
            count,
            numbers_max: NUMBERS_MAX,
            as_numbers: false,
            used,
            ..LeaseRequest::default()
        };
        let actor = Actor::library(&numbering.caller);
        let LeaseGrant { id, content, valid_for } =
            numbering.machine.lease(&numbering.entry, scope, request, actor).await?;
        let content = match content {
            LeaseContent::Ranges(ranges) => {
                let scope = numbering.entry.prepare(scope, numbering.machine.now());
                let scope = scope.map_err(NextError::from)?.into_scope();
                prefetch::LeaseContent::Ranges(positions(ranges), Arc::new(scope))
            }
            LeaseContent::Numbers(numbers, ranges) => {
                let numbers = numbers.iter().map(|(position, text)| (position, text.into()));
                prefetch::LeaseContent::Numbers(numbers.collect(), positions(ranges))
            }
        };
        Ok(Lease { id, content, valid_for })
    }

    async fn give_back(&self, lease: Uuid, unused: Vec<Positions>) -> Result<()> {
        let range = |unused: &Positions| PositionRange::new(unused.start().value(), unused.end().value() + 1);
        let unused = unused.iter().filter_map(range).collect();
        match self.0.machine.end_lease(lease, unused, bates_core::LeaseOwner::Any).await {
            // An earlier call ended the lease, but its answer was lost.
            Ok(_) | Err(EndLeaseError::Unknown(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn is_forked(&self) -> bool {
        self.0.machine.is_forked()
    }

    fn now(&self) -> SystemTime {
        self.0.machine.now().into()
    }
}

fn positions(ranges: Vec<PositionRange>) -> Vec<Positions> {
    let position = |value| Position::new(value).expect("the store grants positions below 2^53");
    ranges.into_iter().map(|range| position(range.from())..=position(range.to() - 1)).collect()
}
