//! One attempt of a batch: one transaction, two round trips. Says whether a failed commit was rolled back or is unknown.

use std::collections::BTreeMap;

use bates_core::ScopeId;
use bates_core::ledger::{
    AdoptedPositions, BatchState, Decision, IdempotencyKey, KeyState, KeyUse, ScopeBefore, decide,
};
use tokio::time::Instant;

use super::queue::Group;
use super::sql::LockedSeries;
use super::writes::{CommitError, Writes};
use super::{Job, Shared, document, sql};
use crate::error::Failure;
use crate::lineage::CommitId;
use crate::read;
use crate::retry::in_time;
use crate::session::Session;

/// The decision for each group; `None` for a new scope if `creates_scopes` is false.
pub(crate) type Decisions = Vec<Option<Decision>>;

pub(crate) enum AttemptError {
    /// Nothing was committed.
    Failed(Failure),
    /// Whether the batch was committed is unknown.
    Unknown { commit: CommitId, decisions: Decisions, reason: Box<str> },
}

impl<E: Into<Failure>> From<E> for AttemptError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Serves the groups in one transaction. It creates new scopes only if `creates_scopes`, because that locks series before
/// cursors: a batch must never wait for a series while it holds a cursor.
pub(crate) async fn attempt(
    shared: &Shared,
    line: i32,
    groups: &mut [Group<Job>],
    creates_scopes: bool,
) -> Result<Decisions, AttemptError> {
    let timeout = shared.settings.timeout;
    let deadline = || Instant::now() + timeout;
    let session = in_time(deadline(), Session::take(&shared.pool, shared.settings)).await?;
    let commit = shared.lineage.next_commit(line);
    let mut loaded = in_time(deadline(), load(shared, &session, commit, groups, creates_scopes)).await?;
    add_late_calls(shared, groups);
    let mut decisions = decide_all(&mut loaded, groups, creates_scopes);
    in_time(deadline(), load_holders(shared, &session, groups, &mut decisions)).await?;
    if decisions.iter().flatten().all(|decision| decision.change.is_empty()) {
        // Nothing was written. Without an answer, the connection is closed.
        if let Ok(Ok(())) = tokio::time::timeout(timeout, session.batch_execute("ROLLBACK")).await {
            session.give_back();
        }
        return Ok(decisions);
    }
    let committed = {
        let writes = Writes::of(groups, &loaded.batch, &decisions);
        tokio::time::timeout(timeout, writes.commit(shared, &session, commit)).await
    };
    let late = |_| Err(CommitError::Unknown("the database did not answer in time".into()));
    match committed.unwrap_or_else(late) {
        Ok(()) => {
            session.give_back();
            shared.lineage.committed(commit);
            Ok(decisions)
        }
        Err(CommitError::RolledBack(failure)) => Err(AttemptError::Failed(failure)),
        Err(CommitError::Unknown(reason)) => Err(AttemptError::Unknown { commit, decisions, reason }),
    }
}

/// Adds calls that came meanwhile. Called once the locks are held.
fn add_late_calls(shared: &Shared, groups: &mut [Group<Job>]) {
    shared.queue.lock().add_late(groups);
    let era = shared.lineage.era();
    for group in groups {
        group.drop_abandoned();
        group.void_old_releases(era);
    }
}

#[derive(Default)]
struct LockedRows {
    series: BTreeMap<String, LockedSeries>,
    /// The scopes that have a cursor, by the index of their group.
    scopes: BTreeMap<usize, ScopeBefore>,
    /// The keys of calls that came before the locks; no other call has one.
    batch: BatchState,
}

/// The first round trip: begins, records the commit on its line, locks and reads. Invariant: every node locks keys, then
/// series, then cursors, each in their order. So a batch that waits for a key holds no lock that the owner of the key needs.
async fn load(
    shared: &Shared,
    session: &Session,
    commit: CommitId,
    groups: &[Group<Job>],
    creates_scopes: bool,
) -> Result<LockedRows, Failure> {
    let scope_ids: Vec<&ScopeId> = groups.iter().map(|group| &group.scope_id).collect();
    let mut names: Vec<&str> =
        scope_ids.iter().filter(|_| creates_scopes).map(|scope_id| scope_id.series.as_str()).collect();
    names.dedup();
    let batch = BatchState::of(groups.iter().flat_map(|group| &group.jobs).map(|job| &job.request));
    let uses = batch.first_uses();
    let (began, recorded, inserted, series, cursors) = tokio::join!(
        biased;
        session.begin(),
        shared.lineage.record_and_check(session, commit),
        document::insert_keys(session, &uses, commit.batch),
        sql::lock_series(session, &names),
        sql::lock_cursors(session, &scope_ids)
    );
    began?;
    recorded?;
    let states = key_states(session, &uses, inserted?, commit).await?;
    let missing = || Failure::Transient("a key that was inserted is missing".into());
    let mut loaded =
        LockedRows { batch: batch.with_states(states).ok_or_else(missing)?, ..LockedRows::default() };
    loaded.series.extend(series?);
    for sql::LockedCursor { index, cursor, adopted_to, promise } in cursors? {
        let requests = groups[index].jobs.iter().map(|job| &job.request);
        let mut adopted = AdoptedPositions::for_requests(cursor, adopted_to, requests);
        while let Some(page) = adopted.missing_page() {
            adopted.add_page(read::adopted(session, scope_ids[index], page.from, page.limit).await?);
        }
        let scope = ScopeBefore { cursor: Some(cursor), promise, adopted, ..ScopeBefore::default() };
        loaded.scopes.insert(index, scope);
    }
    Ok(loaded)
}

/// Usually all keys are new, and none has to be read.
async fn key_states(
    session: &Session,
    uses: &[(&IdempotencyKey, KeyUse)],
    inserted: u64,
    commit: CommitId,
) -> Result<Vec<KeyState>, Failure> {
    if inserted == uses.len() as u64 {
        return Ok(vec![KeyState::New; uses.len()]);
    }
    Ok(document::key_states(session, uses, commit.batch).await?)
}

/// Reads which nodes still hold positions of exhausted scopes, under the locks.
async fn load_holders(
    shared: &Shared,
    session: &Session,
    groups: &[Group<Job>],
    decisions: &mut Decisions,
) -> Result<(), Failure> {
    let exhausted = groups.iter().zip(decisions).filter_map(|(group, decision)| {
        Some((&group.scope_id, decision.as_mut().filter(|each| each.is_exhausted())?))
    });
    let mut exhausted: Vec<(&ScopeId, &mut Decision)> = exhausted.collect();
    if exhausted.is_empty() {
        return Ok(());
    }
    let scopes: Vec<(&ScopeId, u64)> = exhausted
        .iter()
        .map(|(scope_id, decision)| (*scope_id, decision.change.used_to_if_exhausted.unwrap_or(0)))
        .collect();
    let holders = sql::holders(session, &scopes, shared.lineage.node).await?;
    for sql::ScopeHolders { index, has_spent_rows, is_held_elsewhere } in holders {
        exhausted[index].1.set_holders(has_spent_rows, is_held_elsewhere);
    }
    Ok(())
}

fn decide_all(loaded: &mut LockedRows, groups: &[Group<Job>], creates_scopes: bool) -> Decisions {
    let LockedRows { series: all, scopes, batch } = loaded;
    let each = groups.iter().enumerate().map(|(at, group)| {
        let mut series = all.get_mut(group.scope_id.series.as_str());
        let before = match (scopes.remove(&at), &series) {
            (Some(scope), _) => scope,
            (None, _) if !creates_scopes => return None,
            (None, Some(LockedSeries { before, promise })) => {
                ScopeBefore { series: Some(*before), promise: *promise, ..ScopeBefore::default() }
            }
            (None, None) => ScopeBefore::default(),
        };
        let requests = group.jobs.iter().map(|job| &job.request);
        let decision = decide(&before, &group.scope_id, requests, batch);
        if let (true, Some(series)) = (decision.change.is_new, &mut series) {
            series.before.scopes += 1;
        }
        Some(decision)
    });
    each.collect()
}
