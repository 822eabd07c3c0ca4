//! How long the server keeps documents and the operations log.

use std::time::Duration;

use bates_core::{DocumentRetention, RETENTION_MIN};

use super::reader::Reader;

/// A shorter retention would remove what an operator has not looked at yet.
const OPERATIONS_RETENTION_DAYS_MIN: u64 = RETENTION_MIN.as_secs() / (24 * 60 * 60);

pub(super) fn read_retention(reader: &mut Reader<'_, '_>) -> DocumentRetention {
    let DocumentRetention { delivered, undelivered } = DocumentRetention::default();
    let mut hours = |key, default: Duration| {
        Duration::from_hours(reader.number(key, default.as_secs() / 3_600, 0..=876_000))
    };
    DocumentRetention {
        delivered: hours("outbox_retention_hours", delivered),
        undelivered: hours("outbox_undelivered_retention_hours", undelivered),
    }
}

/// `None`: for ever.
pub(super) fn read_operations_retention(reader: &mut Reader<'_, '_>) -> Option<Duration> {
    let days = reader.number("operations_retention_days", 400, 0..=36_500);
    if (1..OPERATIONS_RETENTION_DAYS_MIN).contains(&days) {
        let problem = format!(
            "operations_retention_days is {days}; expected 0, which keeps the operations log forever, or at least \
             {OPERATIONS_RETENTION_DAYS_MIN}"
        );
        reader.add_mistake("operations_retention_days", problem);
    }
    (days > 0).then(|| Duration::from_hours(24 * days))
}

/// Failed deliveries after which a document is dead.
pub(super) fn read_attempts(reader: &mut Reader<'_, '_>) -> u32 {
    u32::try_from(reader.number("outbox_tries", 5, 1..=100)).unwrap_or(5)
}

/// `None`: gaps are found only on request.
pub(super) fn read_reconcile_period(reader: &mut Reader<'_, '_>) -> Option<Duration> {
    let minutes = reader.number("reconcile_minutes", 60, 0..=1_000_000);
    (minutes > 0).then(|| Duration::from_mins(minutes))
}
