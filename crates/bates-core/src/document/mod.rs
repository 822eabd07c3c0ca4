//! Documents. One commit moves the cursor, and writes the number to the ledger and the document to the outbox.
//! A reservation is a document without a body: the caller saves the document elsewhere, and confirms it in time.

mod assign;
mod depth;
mod machine;
mod outbox;
mod record;
mod relay;
mod retention;
mod sink;

pub(crate) use assign::Search;
pub use assign::{AssignError, AssignRequest, Assignment, DocumentContent, Idempotency, NewDocument};
pub use machine::DocumentError;
pub use outbox::{
    ActionCondition, ActionOutcome, ActionRule, ClaimRequest, DocumentAction, DocumentFilter, Settlement,
    Verdict, VerdictChange,
};
pub use record::{Document, DocumentState};
pub use relay::{CLAIM_TTL, Relay, RelaySettings};
pub use retention::{DocumentRetention, PruneGroup};
pub use sink::{
    DeliverEachFuture, DeliverFuture, Delivery, DeliveryError, DeliveryOutcomes, Sink, deliver_through_each,
};
