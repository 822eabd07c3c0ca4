//! The port to the outbox: documents numbered, claimed, delivered and decided on. Filled by every store.
//!
//! Times are told as durations from now: each store has one clock, that of its database, and what is due does not
//! depend on the clocks of nodes. What every outbox must do is tested in one place, `bates_testkit::claims`.

use std::time::Duration;

use uuid::Uuid;

use super::StoreResult;
use crate::document::{
    Assign, AssignError, Assigned, Claim, Claimed, Decided, Decision, Document, Filter, Settlement, State,
};
use crate::series::SeriesName;

/// A durable keeper of documents.
///
/// Invariant: cursor, ledger, document and idempotency key are written in one commit, or none of them is. A number
/// that was assigned is never assigned again, whatever becomes of its document.
#[trait_variant::make(Send)]
pub trait DocumentStore: Send + Sync + 'static {
    /// Numbers a document. Calls that wait together share a commit. The same request gets the same number.
    async fn assign(&self, assign: Assign) -> Result<Assigned, AssignError>;

    /// Documents by their ids, ascending, after `after`, at most `limit`.
    async fn documents(
        &self,
        filter: Filter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<Document>>;

    /// Takes pending documents that are due, those with the fewest tries first, for as long as the claim lasts. Each
    /// claim is a try. What is not settled in time may be claimed by another node.
    async fn claim(&self, claim: Claim) -> StoreResult<Vec<Claimed>>;

    /// Writes down what became of claims; answers how many were accepted. A verdict counts only for the try that
    /// claimed it: a node that slept through its claim changes nothing.
    async fn settle(&self, settled: Vec<Settlement>) -> StoreResult<u64>;

    /// Decides about one document.
    async fn decide(&self, event: Uuid, decision: Decision) -> StoreResult<Decided>;

    /// Decides about all documents that it can be decided about so; answers about how many. Those with a try under way
    /// are not abandoned.
    async fn decide_all(&self, filter: Filter, decision: Decision) -> StoreResult<u64>;

    /// Voids reservations whose time is over, at most `limit`; answers how many.
    async fn expire(&self, limit: usize) -> StoreResult<u64>;

    /// Removes what was delivered or confirmed so long ago, at most `limit`; answers how many. The ledger and the
    /// idempotency keys stay.
    async fn prune(&self, age: Duration, limit: usize) -> StoreResult<u64>;

    /// Waits until others have written something of a series that can be delivered. Word may get lost, and a store that
    /// is not shared has none: who waits must look now and then all the same.
    async fn woken(&self, _series: &SeriesName) -> () {
        std::future::pending()
    }

    /// Whether word of others arrives just now, as far as the store knows: who waits for it may look less often.
    fn is_told(&self) -> bool {
        false
    }

    /// How many documents of each series are in each state.
    async fn tally(&self) -> StoreResult<Vec<(SeriesName, State, u64)>>;
}
