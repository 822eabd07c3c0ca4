//! Which pool is taken from, and how.

use std::collections::BTreeMap;
use std::time::Duration;

/// A crash of the program loses so many numbers at the most; a call of Redis costs as much for one number as for these.
const BATCH: usize = 100;

/// Redis answers in a fraction of a millisecond, and Bates in about one: who waits longer for Redis gains nothing.
const DEADLINE: Duration = Duration::from_millis(5);

/// Which pool is taken from, and how. It cannot be shown, because it holds secrets.
#[derive(Clone)]
pub struct Settings {
    /// Where Bates is, such as `http://127.0.0.1:8080`.
    pub bates: String,
    /// The secret of Bates, if it has one.
    pub secret: Option<String>,
    /// Where Redis is, such as `redis://127.0.0.1:6379`.
    pub redis: String,
    /// The series.
    pub series: String,
    /// The parameters of the scope.
    pub scope: BTreeMap<String, String>,
    /// How many numbers are popped at a time, at least. Those that were popped and not handed out are lost when the
    /// program ends.
    pub batch: usize,
    /// How long a call waits for Redis before it asks Bates.
    pub deadline: Duration,
    /// A bug that tests must find: a list is taken from whatever server it is on.
    #[cfg(feature = "planted-bugs")]
    pub ignores_server: bool,
}

impl Settings {
    /// The pool of a series without parameters, with a batch of 100 and a deadline of 5 ms.
    pub fn new(bates: impl Into<String>, redis: impl Into<String>, series: impl Into<String>) -> Self {
        Self {
            bates: bates.into(),
            secret: None,
            redis: redis.into(),
            series: series.into(),
            scope: BTreeMap::new(),
            batch: BATCH,
            deadline: DEADLINE,
            #[cfg(feature = "planted-bugs")]
            ignores_server: false,
        }
    }
}
