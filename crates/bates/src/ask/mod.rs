//! The commands that ask a running server: `next`, `pop`, `peek`, `validate`, `series`. One file a command.

mod audit;
mod gaps;
mod leases;
mod list;
mod next;
mod numbers;
mod outbox;
mod peek;
mod pop;
mod series;
mod server;
mod validate;

pub(crate) use audit::{AuditArgs, run as audit};
pub(crate) use gaps::{GapsArgs, ReconcileArgs, gaps, reconcile};
pub(crate) use leases::{LeasesArgs, run as leases};
pub(crate) use next::{NextArgs, run as next};
pub(crate) use outbox::{OutboxArgs, run as outbox};
pub(crate) use peek::{PeekArgs, run as peek};
pub(crate) use pop::{PopArgs, run as pop};
pub(crate) use series::{SeriesArgs, run as series};
pub(crate) use server::{Refused, ServerArgs};
pub(crate) use validate::{ValidateArgs, run as validate};
