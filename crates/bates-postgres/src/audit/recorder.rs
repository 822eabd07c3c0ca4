//! Audit records that wait at a node: one transaction at a time writes all of them. A record may be written twice.

use std::sync::Arc;

use bates_core::{AuditRecord, StoreResult};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::batch::{Shared, store_closed};
use crate::error::Failure;
use crate::moving::check_not_left;
use crate::retry::with_retries;
use crate::session::Session;

/// Max records in one commit; its last call may exceed it. A row has a few hundred bytes.
const RECORDS_MAX: usize = 4_096;

#[derive(Clone, Default)]
pub(crate) struct Recorder {
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    calls: Vec<Call>,
    is_writing: bool,
}

struct Call {
    records: Vec<AuditRecord>,
    answer: oneshot::Sender<StoreResult<()>>,
}

impl Recorder {
    pub(crate) async fn record(&self, shared: &Arc<Shared>, records: Vec<AuditRecord>) -> StoreResult<()> {
        if records.is_empty() {
            return Ok(());
        }
        let (answer, receiver) = oneshot::channel();
        let is_idle = {
            let mut waiting = self.waiting.lock();
            waiting.calls.push(Call { records, answer });
            !std::mem::replace(&mut waiting.is_writing, true)
        };
        if is_idle {
            tokio::spawn(write_all(self.clone(), shared.clone()));
        }
        receiver.await.unwrap_or_else(|_| Err(store_closed()))
    }

    /// The next calls to write; `None` if no call waits, and the task ends.
    fn next(&self) -> Option<Vec<Call>> {
        let mut waiting = self.waiting.lock();
        let mut count = 0;
        let fits = waiting.calls.iter().take_while(|call| {
            let has_room = count < RECORDS_MAX;
            count += call.records.len();
            has_room
        });
        let fits = fits.count();
        waiting.is_writing = fits > 0;
        (fits > 0).then(|| waiting.calls.drain(..fits).collect())
    }
}

async fn write_all(recorder: Recorder, shared: Arc<Shared>) {
    while let Some(calls) = recorder.next() {
        let records: Vec<&AuditRecord> = calls.iter().flat_map(|call| &call.records).collect();
        let written = with_retries(shared.settings.timeout, || write(&shared, &records)).await;
        let answer = written.map_err(Failure::into_store_error);
        for call in calls {
            let _ = call.answer.send(answer.clone());
        }
    }
}

/// Invariant: returns only after the commit.
async fn write(shared: &Shared, records: &[&AuditRecord]) -> Result<(), Failure> {
    let session = Session::take(&shared.pool, shared.settings).await?;
    let (began, inserted, not_left) =
        tokio::join!(biased; session.begin(), super::insert(&session, records), check_not_left(&session));
    began?;
    inserted?;
    not_left?;
    session.commit().await?;
    session.give_back();
    Ok(())
}
