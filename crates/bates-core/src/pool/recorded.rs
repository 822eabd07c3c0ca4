//! What is pushed into a pool of an audited series is recorded first.

use super::FillError;
use super::fill::Filling;
use crate::audit::{By, How, Record};
use crate::machine::Numbers;
use crate::range::Lease;
use crate::store::Store;

impl<S: Store> Filling<'_, S> {
    /// Records a chunk of an audited series, durably, before it is pushed: from then on anybody may take from it.
    pub(super) async fn record(&self, numbers: &Numbers, (from, to): (u64, u64)) -> Result<(), FillError> {
        let Some(range) = Lease::new(from, to).filter(|_| self.entry.spec().audit.is_on()) else {
            return Ok(());
        };
        let who = format!("pool {}", self.key);
        let taking = By { who: &who, how: How::Pool }.at(self.runtime.now());
        match Record::of_numbers(
            self.runtime.new_id(),
            &self.place,
            range,
            numbers,
            0..numbers.len(),
            &taking,
        ) {
            Some(record) => Ok(self.store.record(vec![record]).await?),
            None => Ok(()),
        }
    }
}
