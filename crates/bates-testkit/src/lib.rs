//! Shared parts of the tests of Bates: private PostgreSQL and Redis servers, each on its own loopback port and
//! stopped when its test ends; the conformance suite that every store must pass; a store in memory that injects
//! faults; a simulator; and the checker of the answers that clients logged.
//!
//! Must never ship, touch a server that it did not start, or replace one with a fake.

mod certificates;
pub mod clients;
mod clock;
mod error;
pub mod history;
mod model;
mod pgbouncer;
mod pool;
mod postgres;
mod process;
pub mod programs;
mod redis;
pub mod shared_servers;
mod simulation;
mod store;

pub use certificates::{certificates, sign_certificate};
pub use clock::FakeClock;
pub use error::ServerError;
pub use model::check_random_histories;
pub use pgbouncer::PrivatePgBouncer;
pub use pool::MemoryPool;
pub use postgres::PrivatePostgres;
pub use redis::PrivateRedis;
pub use simulation::{SimulatedRuntime, simulate};
pub use store::{DataSet, Fault, MemoryStore, claims, exercise_move};
