//! The front ends of Bates. Owns what a client's bytes mean, how an answer is written, and who is let in.
//!
//! Must never contain a numbering rule, and never see a store: that is for the core and its adapters.

mod access;
pub mod http;
mod port;
pub mod resp;
pub mod series;

pub use access::{Access, Caller};
