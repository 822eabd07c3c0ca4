//! What the tests of Bates stand on. Owns private servers: each test that asks for one has a real
//! PostgreSQL or Redis of its own, on a loopback port of its own, gone when the test is over. And the
//! conformance suite that every store must pass, with a model of the port and faults for what stands on it; and
//! the checker of what clients were answered.
//!
//! Must never ship, never touch a server it did not start, and never stand in for one with a fake.

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

pub use certificates::certificates;
pub use clock::FakeClock;
pub use error::ServerError;
pub use model::check_random_histories;
pub use pgbouncer::PrivatePgBouncer;
pub use pool::MemoryPool;
pub use postgres::PrivatePostgres;
pub use redis::PrivateRedis;
pub use simulation::{SimulatedRuntime, simulate};
pub use store::{DataSet, Fault, MemoryStore, claims, exercise_move};
