//! How much of PostgreSQL a node uses, and how long it tries. Owns the defaults, and says what they cost.

use std::time::Duration;

/// How a node uses its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Connections at the most, and so batches under way. A few are enough: calls that wait share a commit.
    pub connections: usize,
    /// How long a call is tried again while the database is away; then it fails. Also how long a lock is waited
    /// for; a node that sleeps in a transaction holds others up for half as long.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { connections: 8, patience: Duration::from_secs(5) }
    }
}
