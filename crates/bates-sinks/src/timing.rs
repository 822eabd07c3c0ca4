//! How long sinks may take: less than the claim of a document lasts, or nothing would be known of what they were doing.

use std::time::Duration;

use bates_core::{CLAIM_LASTS, Delivering, Delivery, Outcomes, Sink};

use crate::error::SinkError;

/// What is left of a claim when a sink has used up its time.
const SPARE: Duration = Duration::from_secs(5);

/// Refuses a timeout that a claim would not outlast.
pub(crate) fn check(field: &'static str, timeout_ms: u64) -> Result<(), SinkError> {
    let (max, claim) = (CLAIM_LASTS.saturating_sub(SPARE).as_millis(), CLAIM_LASTS.as_millis());
    if (1..=max).contains(&u128::from(timeout_ms)) {
        return Ok(());
    }
    let problem = format!(
        "it is {timeout_ms} and may be 1 to {max}: a document is claimed for {claim} ms and must be answered before"
    );
    Err(SinkError::new(field, problem))
}

/// Delivers through [`Sink::deliver_each`], and answers when all is over.
pub(crate) fn deliver_all<'a>(sink: &'a impl Sink, deliveries: &'a [Delivery]) -> Delivering<'a> {
    Box::pin(async move {
        let outcomes = Outcomes::unknown(deliveries.len());
        sink.deliver_each(deliveries, &outcomes).await;
        outcomes.known("the sink told nothing of it")
    })
}
