//! Records that wait at a node: one transaction at a time, with all that waits when it begins. Keeps nothing in a
//! session, and may write what it wrote before: a record is there once.

use std::sync::Arc;

use bates_core::{Record, StoreResult};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::batch::{Shared, closed};
use crate::error::Failed;
use crate::moving::check_not_left;
use crate::retry::retried;
use crate::session::Session;

/// Records that share one commit, and one more call than fits. A row is some hundred bytes.
const RECORDS_AT_ONCE: usize = 4_096;

#[derive(Clone, Default)]
pub(crate) struct Recorder {
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    calls: Vec<Call>,
    /// Whether somebody writes, and will look for more.
    is_writing: bool,
}

struct Call {
    records: Vec<Record>,
    answer: oneshot::Sender<StoreResult<()>>,
}

impl Recorder {
    /// Writes records, together with whoever waits just now.
    pub(crate) async fn record(&self, shared: &Arc<Shared>, records: Vec<Record>) -> StoreResult<()> {
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

    /// What is written next; `None` if nobody waits, and then nobody writes any more.
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
        let records: Vec<&Record> = calls.iter().flat_map(|call| &call.records).collect();
        let written = retried(shared.settings.patience, || write(&shared, &records)).await;
        let answer = written.map_err(Failed::into_store_error);
        for call in calls {
            // Who no longer waits is told nothing, and answers nobody.
            let _ = call.answer.send(answer.clone());
        }
    }
}

/// Invariant: answered only once the commit is. Of a store that was left, nobody would see them where they are now.
async fn write(shared: &Shared, records: &[&Record]) -> Result<(), Failed> {
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
