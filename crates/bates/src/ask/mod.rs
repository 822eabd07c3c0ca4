//! The commands that ask a running server: `next`, `peek`, `validate`, `series`. One file a command.

mod next;
mod peek;
mod series;
mod server;
mod validate;

pub(crate) use next::{NextArgs, run as next};
pub(crate) use peek::{PeekArgs, run as peek};
pub(crate) use series::{SeriesArgs, run as series};
pub(crate) use server::Refused;
pub(crate) use validate::{ValidateArgs, run as validate};
