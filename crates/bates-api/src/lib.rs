//! The types of the HTTP API: requests, responses, problems, paths, and the text form of a scope.
//!
//! Owns the JSON format, shared by the server, the Rust client and the command line. The `OpenAPI` document is generated
//! from these types (feature `schema`). Must never contain more than parsing and formatting, nor depend on the core or
//! on a socket.
#![warn(missing_docs)]

mod audit;
mod csv;
mod document;
mod gap;
mod identifier;
mod lease;
mod number;
mod operation;
mod page;
mod path;
mod pool;
mod problem;
mod scope;
mod series;
mod token;
mod whole;

pub use audit::*;
pub use document::*;
pub use gap::*;
pub use identifier::*;
pub use lease::*;
pub use number::*;
pub use operation::*;
pub use page::Page;
pub use path::*;
pub use pool::*;
pub use problem::*;
pub use scope::*;
pub use series::*;
pub use token::*;
