//! `/healthz` and `/readyz`: whether the process is running, and whether it can issue numbers.

use std::time::Duration;

use bates_core::{Machine, MachineError, Store, StoreError};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::problem::Result;
use super::routes::Context;

/// How long the result of a check of the store is reused, and how long a check may take.
const CHECK_TTL: Duration = Duration::from_secs(1);

/// Check that the process is running
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, description = "The process is running", body = String)))]
pub(super) async fn check_liveness() -> &'static str {
    "ok\n"
}

/// Check that the server can issue numbers
///
/// Status 200 means that a write to the store succeeded within the last second.
#[utoipa::path(get, path = "/readyz", tag = "operations",
    responses((status = 200, description = "The server can issue numbers", body = String),
        (status = 503, body = bates_api::Problem, content_type = "application/problem+json", description = "The server is stopping, or its store failed")))]
pub(super) async fn check_readiness<S: Store>(context: Context<S>) -> Result<&'static str> {
    context.health.check(&context.machine).await?;
    Ok("ok\n")
}

/// The result of the last check of the store. It is reused because a check costs a write, and any client may ask for one.
#[derive(Default)]
pub(super) struct Health(Mutex<Option<(Instant, Result<(), MachineError>)>>);

impl Health {
    pub(super) async fn check<S: Store>(&self, machine: &Machine<S>) -> Result<(), MachineError> {
        let mut last = self.0.lock().await;
        if let Some((at, outcome)) = &*last
            && at.elapsed() < CHECK_TTL
        {
            return outcome.clone();
        }
        let timed_out = || StoreError::Unavailable("it did not answer within a second".into());
        let checked = timeout(CHECK_TTL, machine.check()).await;
        let outcome = checked.unwrap_or_else(|_| Err(timed_out().into()));
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }
}
