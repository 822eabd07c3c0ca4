//! Numbers on their way to a caller. They are burned if they do not arrive: the caller stopped waiting, or what had to be
//! written before was not.

use super::{Machine, Numbers};
use crate::range::{Lease, Ranges, Taken};
use crate::scope::{Place, ScopeKey};
use crate::series::Entry;
use crate::store::Store;

/// Something that was taken and that the caller does not have yet.
pub(crate) struct Unclaimed<'m, S: Store, T: Positions> {
    machine: &'m Machine<S>,
    entry: &'m Entry,
    key: &'m ScopeKey,
    what: Option<T>,
}

/// Something whose positions can be told.
pub(crate) trait Positions {
    fn ranges(&self) -> Ranges;
}

impl Positions for Numbers {
    /// Positions that the rules reject are not among them: they are no gaps.
    fn ranges(&self) -> Ranges {
        Ranges::of(self.iter().filter_map(|(at, _)| Lease::new(at.value(), at.value() + 1)))
    }
}

impl Positions for Taken {
    fn ranges(&self) -> Ranges {
        Ranges::of(self.leases())
    }
}

impl<'m, S: Store, T: Positions> Unclaimed<'m, S, T> {
    pub(crate) fn new(machine: &'m Machine<S>, (entry, key): (&'m Entry, &'m ScopeKey), what: T) -> Self {
        Self { machine, entry, key, what: Some(what) }
    }

    pub(crate) fn get(&self) -> &T {
        self.what.as_ref().expect("it is there until it is claimed")
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.what.as_mut().expect("it is there until it is claimed")
    }

    /// From here on it is the caller's. Nothing may be waited for afterwards.
    pub(crate) fn claim(mut self) -> T {
        self.what.take().expect("it is there until it is claimed")
    }
}

impl<S: Store, T: Positions> Drop for Unclaimed<'_, S, T> {
    fn drop(&mut self) {
        if let Some(what) = self.what.take() {
            let place = Place { series: self.entry.series.name().clone(), scope: self.key.clone() };
            self.machine.dispenser.burn(&place, what.ranges().iter());
        }
    }
}
