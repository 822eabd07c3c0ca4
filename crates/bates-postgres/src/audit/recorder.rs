//! Records that wait at a node: one transaction at a time, with all that waits when it begins. May write a record twice.

use std::sync::Arc;

use bates_core::{AuditRecord, StoreResult};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::batch::{Shared, closed};
use crate::error::Failed;
use crate::moving::check_not_left;
use crate::retry::retried;
use crate::session::Session;

/// Records in one commit; its last call may exceed it. A row is some hundred bytes.
const RECORDS_AT_ONCE: usize = 4_096;

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
        let begins = {
            let mut waiting = self.waiting.lock();
            waiting.calls.push(Call { records, answer });
            !std::mem::replace(&mut waiting.is_writing, true)
        };
        if begins {
            tokio::spawn(write_all(self.clone(), shared.clone()));
        }
        receiver.await.unwrap_or_else(|_| Err(closed()))
    }

    /// The calls to write next; `None` if none wait, and the task ends.
    fn next(&self) -> Option<Vec<Call>> {
        let mut waiting = self.waiting.lock();
        let mut count = 0;
        let fits = waiting.calls.iter().take_while(|call| {
            let begins = count < RECORDS_AT_ONCE;
            count += call.records.len();
            begins
        });
        let fits = fits.count();
        waiting.is_writing = fits > 0;
        (fits > 0).then(|| waiting.calls.drain(..fits).collect())
    }
}

async fn write_all(recorder: Recorder, shared: Arc<Shared>) {
    while let Some(calls) = recorder.next() {
        let records: Vec<&AuditRecord> = calls.iter().flat_map(|call| &call.records).collect();
        let written = retried(shared.settings.patience, || write(&shared, &records)).await;
        let answer = written.map_err(Failed::into_store_error);
        for call in calls {
            let _ = call.answer.send(answer.clone());
        }
    }
}

/// Invariant: answered only after the commit.
async fn write(shared: &Shared, records: &[&AuditRecord]) -> Result<(), Failed> {
    let session = Session::take(&shared.pool, shared.settings).await?;
    let (began, inserted, is_here) =
        tokio::join!(biased; session.begin(), super::insert(&session, records), check_not_left(&session));
    began?;
    inserted?;
    is_here?;
    session.commit().await?;
    session.give_back();
    Ok(())
}
