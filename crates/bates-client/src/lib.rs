//! The Rust client of Bates: takes numbers from a shared pool, and none twice, whatever becomes of Redis.
//!
//! Owns the way from a pool to a program: from the list in Redis, as long as that is the list that Bates filled; from
//! Bates itself where Redis is away, slow or empty. Must never hand out a number of a server that forgot what it gave
//! away.
//!
//! ```no_run
//! # async fn first() -> Result<(), Box<dyn std::error::Error>> {
//! use bates_client::{Pool, Settings};
//!
//! let mut settings = Settings::new("http://127.0.0.1:8080", "redis://127.0.0.1:6379", "document");
//! settings.scope = [("project", "PROJ"), ("type", "9012")].map(|(n, v)| (n.into(), v.into())).into();
//! let pool = Pool::open(&settings)?;
//! let numbers = pool.pop(10).await?;
//! # Ok(()) }
//! ```

mod bates;
mod breaker;
mod error;
mod list;
mod pool;
mod settings;
mod stock;
mod tap;

pub use error::{OpenError, PopError};
pub use pool::Pool;
pub use settings::Settings;
