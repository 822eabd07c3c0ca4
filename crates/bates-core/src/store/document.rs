//! The port to the outbox: documents are numbered, claimed and settled.
//!
//! Times are durations from now: the clock of the database decides when a document is due, not the clocks of nodes.

use std::time::Duration;

use uuid::Uuid;

use super::StoreResult;
use crate::document::{
    ActionOutcome, AssignError, AssignRequest, Assignment, ClaimRequest, Claimed, Document, DocumentAction,
    DocumentFilter, DocumentState, Settlement,
};
use crate::series::SeriesName;

/// Invariant: cursor, ledger, document and idempotency key are written in one commit, or none of them is. A number
/// that was assigned is never assigned again, whatever becomes of its document.
#[trait_variant::make(Send)]
pub trait DocumentStore: Send + Sync + 'static {
    /// Numbers a document. Calls that wait together share one commit. The same request gets the same number.
    async fn assign(&self, assign: AssignRequest) -> Result<Assignment, AssignError>;

    /// Documents by their ids, ascending, after `after`, at most `limit`.
    async fn documents(
        &self,
        of: DocumentFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<Document>>;

    /// Claims pending documents that are due, those with the fewest attempts first. Each claim is an attempt. When it
    /// ends unsettled, another node may claim the document.
    async fn claim(&self, claim: ClaimRequest) -> StoreResult<Vec<Claimed>>;

    /// Writes the verdicts on claims; answers how many were accepted. A verdict counts only for the latest attempt of a
    /// document: a node that slept through its claim changes nothing.
    async fn settle_claims(&self, settled: Vec<Settlement>) -> StoreResult<u64>;

    async fn apply_action(&self, document_id: Uuid, action: DocumentAction) -> StoreResult<ActionOutcome>;

    /// Applies an action to every document whose state allows it; answers how many. A document with an attempt under way
    /// is not abandoned.
    async fn apply_action_to_all(&self, of: DocumentFilter, action: DocumentAction) -> StoreResult<u64>;

    /// Voids reservations whose time is over, at most `limit`; answers how many.
    async fn expire_reservations(&self, limit: usize) -> StoreResult<u64>;

    /// Removes documents that were delivered or confirmed longer than `age` ago, at most `limit`; answers how many. The
    /// ledger and the idempotency keys stay.
    async fn prune_documents(&self, age: Duration, limit: usize) -> StoreResult<u64>;

    /// Waits until another node has written a document of a series. Notices may get lost, and a store that is not shared
    /// sends none: the caller must also poll.
    async fn document_notice(&self, _series: &SeriesName) -> () {
        std::future::pending()
    }

    /// Whether notices of other nodes arrive, as far as the store knows: then the caller may poll less often.
    fn receives_notices(&self) -> bool {
        false
    }

    /// How many documents of each series are in each state.
    async fn count_documents(&self) -> StoreResult<Vec<(SeriesName, DocumentState, u64)>>;
}
