//! The port to the outbox: documents are numbered, claimed and settled.
//!
//! Times are durations from now: the clock of the store decides when a document is due, not the clocks of nodes.

use std::time::Duration;

use uuid::Uuid;

use super::StoreResult;
use crate::document::{
    ActionOutcome, AssignError, AssignRequest, Assignment, ClaimRequest, Delivery, Document, DocumentAction,
    DocumentFilter, DocumentState, PruneGroup, Settlement,
};
use crate::operation::Operation;
use crate::series::SeriesName;

/// Invariant: cursor, ledger, document and idempotency key are written in one commit, or none of them is. An assigned
/// number is never assigned again, even if its document is voided or abandoned.
#[trait_variant::make(Send)]
pub trait DocumentStore: Send + Sync + 'static {
    /// Numbers a document. Calls that wait at the same time share one commit. A repeated request gets the same number.
    async fn assign(&self, assign: AssignRequest) -> Result<Assignment, AssignError>;

    /// The documents that match, in ascending order of their ids, after `after`, at most `limit`.
    async fn documents(
        &self,
        filter: DocumentFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<Document>>;

    /// Claims pending documents that are due, those with the fewest attempts first. Each claim is an attempt. If it expires
    /// before it is settled, another node may claim the document.
    async fn claim(&self, claim: ClaimRequest) -> StoreResult<Vec<Delivery>>;

    /// Writes the verdicts on claims; returns how many were accepted. A verdict counts only for the latest attempt of a
    /// document: a node whose claim expired and was taken over changes nothing.
    async fn settle_claims(&self, settlements: Vec<Settlement>) -> StoreResult<u64>;

    async fn apply_action(
        &self,
        document_id: Uuid,
        action: DocumentAction,
        operation: Option<Operation>,
    ) -> StoreResult<ActionOutcome>;

    /// Applies an action to all documents whose state allows it; returns how many it changed. A document with an attempt
    /// under way is not abandoned.
    async fn apply_action_to_all(
        &self,
        filter: DocumentFilter,
        action: DocumentAction,
        operation: Option<Operation>,
    ) -> StoreResult<u64>;

    /// Voids expired reservations, at most `limit`; returns how many.
    async fn expire_reservations(&self, limit: usize) -> StoreResult<u64>;

    /// Removes documents of a group whose state was last written longer than `age` ago, at most `limit`; returns how
    /// many. The ledger and the idempotency keys stay. In the same commit each position gets the reason of
    /// [`PruneGroup::explanations`], as a lost position, and each key the state of its document.
    async fn prune_documents(&self, group: PruneGroup, age: Duration, limit: usize) -> StoreResult<u64>;

    /// Waits for a notice that another node has written a document of a series. Notices may get lost, and a store that is
    /// not shared sends none: the caller must also poll.
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
