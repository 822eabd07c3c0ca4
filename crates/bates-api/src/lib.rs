//! What travels between a server and its clients: requests, responses, problems, paths, and scopes in text.
//!
//! Owns how each of them is spelled, once for the server, the Rust client and the command line; `OpenAPI` is made from
//! it (feature `schema`). Must never contain behaviour beyond parsing and spelling, nor know the core or a socket.
#![warn(missing_docs)]

mod audit;
mod document;
mod gap;
mod identifier;
mod lease;
mod number;
mod page;
mod path;
mod pool;
mod problem;
mod scope;
mod series;

pub use audit::*;
pub use document::*;
pub use gap::*;
pub use identifier::*;
pub use lease::*;
pub use number::*;
pub use page::Page;
pub use path::*;
pub use pool::*;
pub use problem::*;
pub use scope::*;
pub use series::*;
