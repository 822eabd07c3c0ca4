//! Numbers in advance: leased from the machine, and handed out at the price of an atomic addition.

use std::sync::Arc;
use std::time::SystemTime;

use bates_core::{Advance, By, EndRefused, Lease, LeaseAsk, Leased, NextError, ScopeName};
use bates_pattern::Position;
use bates_prefetch::{Given, Numbers, Positions, Prefetch, Source};
use uuid::Uuid;

use super::error::Result;
use super::{Error, Numbering};

/// Numbers of one scope, held in advance by [`Numbering::prefetch`]. It keeps the folder open: close or drop it before
/// [`Bates`](crate::Bates).
pub type Prefetched = bates_prefetch::Prefetched<Leases>;

/// Where numbers in advance come from: leases of one scope of the machine.
pub struct Leases(Numbering);

const NUMBERS_MAX: u64 = 100_000;

impl Numbering {
    /// Holds numbers of the scope in advance: this many at first, up to a hundred times as many while they are used up
    /// within a second, or as [`Prefetch`] says. A number then costs a few nanoseconds, and is rendered when it is read.
    /// Only for unique series; the first call fails for others. Unused numbers become gaps when the last handle is
    /// dropped or closed, or in a crash.
    pub fn prefetch(&self, prefetch: impl Into<Prefetch>) -> Prefetched {
        Prefetched::new(Leases(self.clone()), prefetch.into(), &self.runtime)
    }
}

impl Source for Leases {
    type Error = Error;

    async fn lease(&self, count: u64, used: Vec<Uuid>) -> Result<Given> {
        let Self(numbering) = self;
        let parameters = numbering.parameters();
        let name = ScopeName { parameters: &parameters, date: numbering.date };
        let ask = LeaseAsk { count, numbers_max: NUMBERS_MAX, as_numbers: false, used };
        let by = By::library(&numbering.who);
        let Leased { id, what, good_for } = numbering.machine.lease(&numbering.entry, name, ask, by).await?;
        let numbers = match what {
            Advance::Ranges(ranges) => {
                let scope = numbering.entry.ready(name, numbering.machine.now()).map_err(NextError::from)?;
                Numbers::Positions(positions(ranges), Arc::new(scope.into_scope()))
            }
            Advance::Numbers(numbers, ranges) => {
                let numbers = numbers.iter().map(|(position, text)| (position, text.into()));
                Numbers::Written(numbers.collect(), positions(ranges))
            }
        };
        Ok(Given { lease: id, numbers, good_for })
    }

    async fn give_back(&self, lease: Uuid, unused: Vec<Positions>) -> Result<()> {
        let range = |unused: &Positions| Lease::new(unused.start().value(), unused.end().value() + 1);
        let unused = unused.iter().filter_map(range).collect();
        match self.0.machine.end_lease(lease, unused).await {
            // An earlier call ended the lease, but its answer was lost.
            Ok(_) | Err(EndRefused::Unknown(_)) => Ok(()),
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

fn positions(ranges: Vec<Lease>) -> Vec<Positions> {
    let position = |value| Position::new(value).expect("the store grants positions below 2^53");
    ranges.into_iter().map(|range| position(range.from())..=position(range.to() - 1)).collect()
}
