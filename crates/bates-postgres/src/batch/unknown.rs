//! Commits whose outcome is unknown because the connection broke. Must never issue their positions before a look-up.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bates_core::ledger::{Outcome, Request};
use bates_core::{GrantPurpose, PositionRange, ScopeId, StoreError};

use super::attempt::Decisions;
use super::queue::Group;
use super::sql::{self, BatchOrigin, Table};
use super::{Job, Shared};
use crate::error::Failure;
use crate::lineage::CommitId;
use crate::retry::Backoff;
use crate::session::Session;

/// Whether a batch was committed; `None` if the time limit passes first.
pub(super) async fn resolve(shared: &Shared, commit: CommitId, backoff: &mut Backoff) -> Option<bool> {
    loop {
        match tokio::time::timeout_at(backoff.ends(), look_up(shared, commit)).await {
            Ok(Ok(committed)) => return Some(committed),
            Ok(Err(_)) if backoff.pause().await => {}
            _ => return None,
        }
    }
}

async fn look_up(shared: &Shared, commit: CommitId) -> Result<bool, Failure> {
    let session = Session::take(&shared.pool, shared.settings).await?;
    let committed = shared.lineage.look_up(&session, commit).await?;
    session.give_back();
    if committed {
        shared.lineage.committed(commit);
    }
    Ok(committed)
}

/// Calls for gapless numbers and documents wait until the outcome is known. Others fail, and their positions are burned.
pub(super) fn resolve_in_background(
    shared: &Arc<Shared>,
    commit: CommitId,
    groups: Vec<Group<Job>>,
    decisions: Decisions,
    reason: &str,
) {
    let error = StoreError::Unavailable(
        format!("{reason}; whether the commit succeeded is unknown, so its numbers are not issued").into(),
    );
    let mut waiting = Vec::new();
    let mut burned: Vec<(ScopeId, PositionRange)> = Vec::new();
    for (group, decision) in groups.into_iter().zip(decisions) {
        let outcomes = decision.map(|decision| decision.outcomes).unwrap_or_default();
        let mut outcomes = outcomes.into_iter();
        for job in group.jobs {
            match (&job.request, outcomes.next()) {
                (Request::Grant(request), Some(outcome)) if request.purpose == GrantPurpose::Issue => {
                    waiting.push((job, outcome));
                }
                (Request::Assign(_), Some(outcome)) => waiting.push((job, outcome)),
                (_, outcome) => {
                    if let Some(Outcome::Grant(Ok(grant))) = outcome {
                        burned.push((group.scope_id.clone(), grant.range));
                    }
                    job.fail(error.clone());
                }
            }
        }
    }
    tokio::spawn(resolve_later(Arc::downgrade(shared), commit, waiting, burned, error));
}

/// Looks the commit up until its outcome is known or the store is dropped.
async fn resolve_later(
    shared: Weak<Shared>,
    commit: CommitId,
    waiting: Vec<(Job, Outcome)>,
    burned: Vec<(ScopeId, PositionRange)>,
    error: StoreError,
) {
    let mut backoff = Backoff::new(Duration::ZERO);
    let committed = loop {
        backoff.pause_without_limit().await;
        let Some(shared) = shared.upgrade() else { return };
        let look_up = async {
            let committed = look_up(&shared, commit).await?;
            if committed {
                write_burned(&shared, commit, &burned).await?;
            }
            Ok::<_, Failure>(committed)
        };
        if let Ok(Ok(committed)) = tokio::time::timeout(shared.settings.timeout, look_up).await {
            break committed;
        }
    };
    for (job, outcome) in waiting {
        if committed { job.send(outcome) } else { job.fail(error.clone()) }
    }
}

async fn write_burned(
    shared: &Shared,
    commit: CommitId,
    burned: &[(ScopeId, PositionRange)],
) -> Result<(), Failure> {
    let ranges: Vec<_> = burned.iter().map(|(scope_id, range)| (scope_id, *range)).collect();
    let scope_ids: Vec<&ScopeId> = ranges.iter().map(|(scope_id, _)| *scope_id).collect();
    let origin = BatchOrigin { node: shared.lineage.node, batch: commit.batch };
    let session = Session::take(&shared.pool, shared.settings).await?;
    session.begin().await?;
    sql::write_ranges(&session, Table::Burned, &ranges, origin).await?;
    sql::remove_batch(&session, &scope_ids, commit.batch).await?;
    session.commit().await?;
    session.give_back();
    Ok(())
}
