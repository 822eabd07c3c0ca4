//! `/healthz` and `/readyz`: whether the process lives, and whether it can issue numbers.

use std::time::Duration;

use bates_core::{Machine, MachineError, Store, StoreError};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::problem::Problem;
use super::routes::Context;

/// How long a look at the store is valid, and how long it may take.
const LOOK_LASTS: Duration = Duration::from_secs(1);

/// Whether the process lives
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, description = "It does", body = String)))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether numbers can be issued
///
/// An answer of 200 means that the store could be written within the last second.
#[utoipa::path(get, path = "/readyz", tag = "operations",
    responses((status = 200, description = "They can", body = String),
        (status = 503, body = bates_api::Problem, content_type = "application/problem+json", description = "The server stops, or its store fails")))]
pub(super) async fn ready<S: Store>(context: Context<S>) -> Result<&'static str, Problem> {
    context.health.check(&context.machine).await?;
    Ok("ok\n")
}

/// The last look at the store. Looking costs a write, and any caller may ask.
#[derive(Default)]
pub(super) struct Health(Mutex<Option<(Instant, Result<(), MachineError>)>>);

impl Health {
    pub(super) async fn check<S: Store>(&self, machine: &Machine<S>) -> Result<(), MachineError> {
        let mut last = self.0.lock().await;
        if let Some((at, outcome)) = &*last
            && at.elapsed() < LOOK_LASTS
        {
            return outcome.clone();
        }
        let late = || StoreError::Unavailable("it did not answer within a second".into());
        let checked = timeout(LOOK_LASTS, machine.check()).await;
        let outcome = checked.unwrap_or_else(|_| Err(late().into()));
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }
}
