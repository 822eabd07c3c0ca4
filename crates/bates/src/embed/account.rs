//! What became of numbers: traced, recorded, or missing.

use bates_core::{Found, Gap, GapFilter, Place, Reconciled, Record, RecordFilter};
use uuid::Uuid;

use super::{Bates, Error};

impl Bates {
    /// Everything that a text could be, by the name of the series.
    pub async fn find(&self, text: &str) -> Result<Vec<Found>, Error> {
        Ok(self.machine.find(text).await?)
    }

    /// Compares the cursors with what was issued, numbered and held, and writes down what is missing.
    pub async fn reconcile(&self) -> Result<Reconciled, Error> {
        Ok(self.machine.reconcile(None).await?)
    }

    /// The gaps that the last reconciliation found, in the order of their places and positions, after `after`, at most
    /// `limit`.
    pub async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> Result<Vec<Gap>, Error> {
        Ok(self.machine.gaps(of, after, limit).await?)
    }

    /// Who took which numbers of audited series, by time, after `after`, at most `limit`.
    pub async fn records(
        &self,
        of: RecordFilter,
        after: Option<&Record>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let after: Option<(_, Uuid)> = after.map(|record| (record.taking.at, record.id));
        Ok(self.machine.records(of, after, limit).await?)
    }
}
