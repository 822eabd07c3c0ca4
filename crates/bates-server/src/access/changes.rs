//! How often a tenant may change series, tokens and documents: each change leaves a record for months.

use std::time::Duration;

use parking_lot::Mutex;

/// Changes at once.
const CHANGES_MAX: u32 = 300;

/// One more may follow after this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// The changes of the tokens of a tenant.
#[derive(Debug, Default)]
pub(super) struct ChangeRate {
    /// When the changes so far are paid off, in elapsed time.
    paid_at: Mutex<Duration>,
}

impl ChangeRate {
    pub(super) fn count(&self, now: Duration) -> Result<(), Duration> {
        let mut paid_at = self.paid_at.lock();
        let after = (*paid_at).max(now) + INTERVAL;
        match after.saturating_sub(now + INTERVAL * CHANGES_MAX) {
            Duration::ZERO => {
                *paid_at = after;
                Ok(())
            }
            wait => Err(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_change_a_second() {
        let (changes, start) = (ChangeRate::default(), Duration::from_secs(100));
        let passed = (0..1_000).filter(|_| changes.count(start).is_ok()).count();
        assert_eq!(passed, 300);
        assert_eq!(changes.count(start), Err(INTERVAL));
        let later = (1..=100).filter(|second| changes.count(start + INTERVAL * *second).is_ok()).count();
        assert_eq!(later, 100);
    }
}
