//! The commands that ask a running server: `next`, `pop`, `peek`, `validate`, `series`, and lists of what it knows.

mod audit;
mod gaps;
mod leases;
mod list;
mod numbers;
mod outbox;
mod peek;
mod series;
mod server;
mod validate;

pub(crate) use audit::AuditArgs;
pub(crate) use gaps::{GapsArgs, ReconcileArgs};
pub(crate) use leases::LeasesArgs;
pub(crate) use numbers::{NextArgs, PopArgs};
pub(crate) use outbox::OutboxArgs;
pub(crate) use peek::PeekArgs;
pub(crate) use series::SeriesArgs;
pub(crate) use server::{Refused, ServerArgs, explain};
pub(crate) use validate::{Line, ValidateArgs, print_verdict};
