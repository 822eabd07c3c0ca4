//! What a scope holds in memory, given up before it is used.

use super::{Cell, Refill};
use crate::range::Lease;

impl Cell {
    /// Gives up what is held, and what is on its way once it arrives.
    pub(in super::super) fn discard(&mut self) -> Vec<Lease> {
        if self.refill == Refill::UnderWay {
            self.refill = Refill::Discarded;
        }
        self.held.take_all()
    }

    /// Whether what a refill under way brings is given up.
    pub(in super::super) fn is_refill_discarded(&self) -> bool {
        self.refill == Refill::Discarded
    }
}
