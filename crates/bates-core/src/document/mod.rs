//! Documents: numbers that are assigned to something, and what becomes of it.
//!
//! A document gets its number, its row in the ledger and its place in the outbox in one commit: there is no moment in
//! which a number is taken and not written. A reservation is the same without a body: somebody else saves the
//! document, and says so in time.

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
pub use sink::{Delivering, DeliveringEach, Delivery, Outcomes, Sink, Undelivered};
