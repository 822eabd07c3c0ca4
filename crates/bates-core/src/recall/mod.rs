//! Recalls: what processes hold of a series is given up before a cursor is raised past it or its positions are adopted.
//!
//! Each series has an epoch in the store. A recall raises it; a process answers once it holds nothing that was granted
//! before. Invariant: the store takes an answer only for ranges that it granted to the process that answers, so a
//! process that stays silent is seen in [`Store::holders`](crate::NodeStore::holders).

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

/// A demand to give up what was granted of a series before an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    /// The series.
    pub series: SeriesName,
    /// What was granted before this epoch is given up.
    pub epoch: u64,
}

/// A process that holds ranges of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id in the store.
    pub node: Uuid,
    /// Its host and process, for people.
    pub name: Box<str>,
    /// How long the store has not heard of it.
    pub silent_for: Duration,
    /// Whether it is known to have ended: it ran on this machine, and is there no more.
    pub has_ended: bool,
    /// How many positions it holds at most.
    pub positions: u64,
    /// Some of its ranges, the first ones.
    pub ranges: Vec<(ScopeKey, Lease)>,
}

/// The processes that hold ranges granted before an epoch and have not ended. Those that have are written off.
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
