//! Why something failed: calls of a [`Client`](crate::Client), and those of a [`Pool`](crate::Pool).

mod call;
mod pool;

pub(crate) use call::is_passing;
pub use call::{Code, Error};
pub(crate) use pool::TapError;
pub use pool::{OpenError, PopError};
