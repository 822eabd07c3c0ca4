//! The front ends of Bates: HTTP and the Redis protocol. Owns parsing of requests, formatting of answers, and
//! authentication.
//!
//! Must never contain a numbering rule, and never access a store directly: both belong to the core and its adapters.

mod access;
mod defense;
pub mod http;
mod offers;
mod port;
pub mod resp;
pub mod series;
mod tls;

pub use access::{Access, Caller, Peer, QUOTA_MAX, RATE_MAX, SCOPES_MAX, build_permissions};
pub use defense::{Defense, DefenseSettings};
pub use offers::Offers;
pub use tls::{Tls, TlsError, TlsFiles};
