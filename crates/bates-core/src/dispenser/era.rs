//! What is held when the store no longer vouches for it: it may be granted to others, and is given up.

use std::sync::atomic::Ordering;

use super::Inner;
use crate::ledger::{Surrendered, Tail};
use crate::store::{Store, StoreError};

impl<S: Store> Inner<S> {
    /// Asked behind every answer of the store, before anything of it is held. What is on its way is given up as well:
    /// nobody can tell which side of the change it was granted on.
    pub(super) fn keep_up(&self) {
        let era = self.store.era();
        if self.era.load(Ordering::Acquire) == era || self.era.swap(era, Ordering::AcqRel) == era {
            return;
        }
        self.discard(|_| true);
    }

    /// Gives a tail back that was granted in an era, unless that is over.
    pub(super) async fn surrender(&self, tail: Tail, era: u64) -> Result<Surrendered, StoreError> {
        if self.store.era() != era {
            self.given_up.add(tail.place, tail.lost.into_iter().chain([tail.lease]));
            return Ok(Surrendered::Gap);
        }
        self.store.surrender(tail).await
    }
}
