//! The servers that `cargo xtask test` starts once for all tests that do not stop or kill them. Owns the environment
//! variables that name them.

use std::env;

/// The environment variable that holds the URL of the shared PostgreSQL.
pub const POSTGRES_VARIABLE: &str = "BATES_TEST_POSTGRES";

/// The environment variable that holds the URL of the shared Redis.
pub const REDIS_VARIABLE: &str = "BATES_TEST_REDIS";

/// The URL of the shared PostgreSQL; `None` under a plain `cargo test`.
pub fn postgres_url() -> Option<String> {
    env::var(POSTGRES_VARIABLE).ok()
}

/// The URL of the shared Redis; `None` under a plain `cargo test`.
pub fn redis_url() -> Option<String> {
    env::var(REDIS_VARIABLE).ok()
}
