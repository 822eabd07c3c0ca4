//! Recalls: processes give up what they hold of a series before its cursor is raised or positions are adopted.
//!
//! Each series has an epoch in the store. A recall raises it; a process answers once it holds nothing granted before.
//! Invariant: the store takes an answer only for ranges that it granted to the answering process, so a silent process
//! is seen in [`Store::holders`](crate::NodeStore::holders).

mod machine;

use std::time::Duration;

use uuid::Uuid;

use crate::range::Lease;
use crate::scope::ScopeKey;
use crate::series::SeriesName;
use crate::store::{Store, StoreError};

pub use machine::Recalled;

/// How often the store is asked who has not answered.
pub(crate) const POLL: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    pub series: SeriesName,
    /// Ranges granted before this epoch are given up.
    pub epoch: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub node: Uuid,
    /// Host and process, for people.
    pub name: Box<str>,
    /// How long the store has not heard from it.
    pub silent_for: Duration,
    /// Whether it ran on this machine and no longer exists.
    pub has_ended: bool,
    /// An upper bound.
    pub positions: u64,
    /// The first of its ranges.
    pub ranges: Vec<(ScopeKey, Lease)>,
}

/// The processes that hold ranges granted before an epoch and have not ended. Writes off those that have.
pub(crate) async fn holders_alive<S: Store>(
    store: &S,
    series: &SeriesName,
    epoch: u64,
) -> Result<Vec<Holder>, StoreError> {
    let (ended, alive): (Vec<Holder>, Vec<Holder>) =
        store.holders(series.clone(), epoch).await?.into_iter().partition(|holder| holder.has_ended);
    if !ended.is_empty() {
        let nodes = ended.iter().map(|holder| holder.node).collect();
        store.write_off(series.clone(), epoch, nodes).await?;
    }
    Ok(alive)
}
