//! Documents: a document gets its number, its row in the ledger and its place in the outbox in one commit.
//! A reservation is a document without a body: the caller saves it elsewhere, and confirms in time.

mod assign;
mod machine;
mod outbox;
mod record;
mod relay;
mod sink;

pub use assign::{Assign, AssignError, Assigned, Content, Idempotency, Numbered};
pub use machine::AssignRefused;
pub use outbox::{
    Claim, Claimed, Decided, Decision, DecisionRule, DecisionTime, Filter, Settled, Settlement, Verdict,
};
pub use record::{Document, State};
pub use relay::{CLAIM_LASTS, Relay, RelaySettings};
pub use sink::{Delivering, DeliveringEach, Delivery, Outcomes, Sink, Undelivered, deliver_by_each};
