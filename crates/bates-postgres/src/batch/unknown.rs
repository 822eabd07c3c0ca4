//! A commit whose outcome is unknown, because the connection broke. It is looked up, and until then nothing of it is
//! handed out. Must never guess.

use std::sync::{Arc, Weak};

use bates_core::ledger::{Outcome, Request};
use bates_core::{GrantPurpose, PositionRange, ScopeId, StoreError};

use super::attempt::Decisions;
use super::queue::Group;
use super::sql::{self, By, Table};
use super::{Job, Shared};
use crate::error::Failed;
use crate::lineage::Entry;
use crate::retry::Patience;
use crate::session::Session;

/// Whether a batch was committed; `None` if that cannot be learned in time.
pub(super) async fn decide(shared: &Shared, entry: Entry, left: &mut Patience) -> Option<bool> {
    loop {
        match tokio::time::timeout_at(left.ends(), look_up(shared, entry)).await {
            Ok(Ok(committed)) => return Some(committed),
            Ok(Err(_)) if left.pause().await => {}
            _ => return None,
        }
    }
}

async fn look_up(shared: &Shared, entry: Entry) -> Result<bool, Failed> {
    let session = Session::take(&shared.pool, shared.settings).await?;
    let committed = shared.truth.look_up(&session, entry).await?;
    session.give_back();
    if committed {
        shared.truth.committed(entry);
    }
    Ok(committed)
}

/// Fails calls for leases and ordered numbers, and burns their ranges. Calls for gapless numbers and documents wait until
/// the outcome is known, however long that takes.
pub(super) fn give_up(
    shared: &Arc<Shared>,
    entry: Entry,
    groups: Vec<Group<Job>>,
    decisions: Decisions,
    reason: &str,
) {
    let error = StoreError::Unavailable(
        format!("{reason}; it is not known whether it was committed, and its numbers are not used").into(),
    );
    let mut patient = Vec::new();
    let mut burned: Vec<(ScopeId, PositionRange)> = Vec::new();
    for (group, decision) in groups.into_iter().zip(decisions) {
        let outcomes = decision.map(|decision| decision.outcomes).unwrap_or_default();
        let mut outcomes = outcomes.into_iter();
        for job in group.jobs {
            match (&job.request, outcomes.next()) {
                (Request::Grant(request), Some(outcome)) if request.purpose == GrantPurpose::Issue => {
                    patient.push((job, outcome));
                }
                (Request::Assign(_), Some(outcome)) => patient.push((job, outcome)),
                (_, outcome) => {
                    if let Some(Outcome::Grant(Ok(grant))) = outcome {
                        burned.push((group.scope_id.clone(), grant.range));
                    }
                    job.fail(error.clone());
                }
            }
        }
    }
    tokio::spawn(learn_late(Arc::downgrade(shared), entry, patient, burned, error));
}

/// Goes on looking until it is known, or the store is dropped.
async fn learn_late(
    shared: Weak<Shared>,
    entry: Entry,
    patient: Vec<(Job, Outcome)>,
    burned: Vec<(ScopeId, PositionRange)>,
    error: StoreError,
) {
    let mut left = Patience::new(std::time::Duration::ZERO);
    let committed = loop {
        left.pause_anyway().await;
        let Some(shared) = shared.upgrade() else { return };
        let looked = async {
            let committed = look_up(&shared, entry).await?;
            if committed {
                write_burned(&shared, entry, &burned).await?;
            }
            Ok::<_, Failed>(committed)
        };
        if let Ok(Ok(committed)) = tokio::time::timeout(shared.settings.patience, looked).await {
            break committed;
        }
    };
    for (job, outcome) in patient {
        if committed { job.tell(outcome) } else { job.fail(error.clone()) }
    }
}

async fn write_burned(
    shared: &Shared,
    entry: Entry,
    burned: &[(ScopeId, PositionRange)],
) -> Result<(), Failed> {
    let ranges: Vec<(&ScopeId, PositionRange)> =
        burned.iter().map(|(scope_id, lease)| (scope_id, *lease)).collect();
    let places: Vec<&ScopeId> = ranges.iter().map(|(scope_id, _)| *scope_id).collect();
    let by = By { node: shared.truth.node, batch: entry.batch };
    let session = Session::take(&shared.pool, shared.settings).await?;
    session.begin().await?;
    sql::write_ranges(&session, Table::Burned, &ranges, by).await?;
    sql::remove_batch(&session, &places, entry.batch).await?;
    session.commit().await?;
    session.give_back();
    Ok(())
}
