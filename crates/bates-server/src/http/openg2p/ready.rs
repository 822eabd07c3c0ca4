//! Whether every ID type can issue. Once it could, a type stays ready: what fails later is told by who asks for an ID.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bates_core::{NextError, Store};
use tokio::time::{Instant, sleep};

use super::id_type;
use crate::http::routes::Context;

/// How long whoever asks waits for what is being fetched just now.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// The types that could issue, or were exhausted, when they were looked at.
#[derive(Default)]
pub(in crate::http) struct Ready(Mutex<HashSet<String>>);

impl Ready {
    /// The first type that cannot issue yet.
    pub(super) async fn missing<S: Store>(&self, context: &Context<S>) -> Result<Option<String>, NextError> {
        let until = Instant::now() + PATIENCE;
        for (name, (entry, _)) in id_type::all(context) {
            while !self.seen().contains(&name) {
                if context.machine.is_ready(&entry).await? {
                    self.seen().insert(name.clone());
                } else if Instant::now() >= until {
                    return Ok(Some(name));
                } else {
                    sleep(LOOK).await;
                }
            }
        }
        Ok(None)
    }

    fn seen(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
