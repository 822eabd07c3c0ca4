//! One try of a batch: one transaction, two round trips. Owns what is surely not committed and what may be.

use std::collections::BTreeMap;

use bates_core::ScopeId;
use bates_core::ledger::{
    AdoptedPositions, Decision, IdempotencyKey, IdempotencyKeys, KeyState, KeyUse, ScopeBefore, decide,
};
use tokio::time::Instant;

use super::queue::Group;
use super::sql::LockedSeries;
use super::writes::{Uncommitted, Writes};
use super::{Job, Shared, document, sql};
use crate::error::Failed;
use crate::lineage::Entry;
use crate::read;
use crate::retry::in_time;
use crate::session::Session;

/// The decision for each group; `None` for a new scope where `makes` is false.
pub(crate) type Decisions = Vec<Option<Decision>>;

pub(crate) enum Broken {
    Failed(Failed),
    Unknown { entry: Entry, decisions: Decisions, reason: Box<str> },
}

impl<E: Into<Failed>> From<E> for Broken {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Serves the groups in one transaction. New scopes are made only if `makes`: that locks series first and then cursors, so
/// a batch must never wait for a series while it holds a cursor.
pub(crate) async fn attempt(
    shared: &Shared,
    line: i32,
    groups: &mut [Group<Job>],
    makes: bool,
) -> Result<Decisions, Broken> {
    let patience = shared.settings.patience;
    let soon = || Instant::now() + patience;
    let session = in_time(soon(), Session::take(&shared.pool, shared.settings)).await?;
    let entry = shared.truth.entry(line);
    let mut found = in_time(soon(), load(shared, &session, entry, groups, makes)).await?;
    board(shared, groups);
    let mut decisions = decide_all(&mut found, groups, makes);
    in_time(soon(), learn_holders(shared, &session, groups, &mut decisions)).await?;
    if decisions.iter().flatten().all(|decision| decision.change.is_empty()) {
        // Nothing is written. Without an answer the connection is closed.
        if let Ok(Ok(())) = tokio::time::timeout(patience, session.batch_execute("ROLLBACK")).await {
            session.give_back();
        }
        return Ok(decisions);
    }
    let committed = {
        let writes = Writes::of(groups, &found.keys, &decisions);
        tokio::time::timeout(patience, writes.commit(shared, &session, entry)).await
    };
    match committed.unwrap_or_else(|_| Err(Uncommitted::Perhaps("it did not answer in time".into()))) {
        Ok(()) => {
            session.give_back();
            shared.truth.committed(entry);
            Ok(decisions)
        }
        Err(Uncommitted::Surely(failed)) => Err(Broken::Failed(failed)),
        Err(Uncommitted::Perhaps(reason)) => Err(Broken::Unknown { entry, decisions, reason }),
    }
}

/// Called once the locks are held.
fn board(shared: &Shared, groups: &mut [Group<Job>]) {
    shared.queue.lock().board(groups);
    let era = shared.truth.era();
    for group in groups {
        group.leave_out_who_gave_up();
        group.leave_tails_of_before(era);
    }
}

#[derive(Default)]
struct There {
    series: BTreeMap<String, LockedSeries>,
    /// The scopes that have a cursor, by the index of their group.
    scopes: BTreeMap<usize, ScopeBefore>,
    /// The keys of calls that came before the locks were taken.
    keys: IdempotencyKeys,
}

/// The first round trip: begins, enters the batch on its line, locks and reads. Invariant: every node locks keys, then
/// series, then cursors, each in their order, so a batch that waits for a key holds no lock that its owner needs.
async fn load(
    shared: &Shared,
    session: &Session,
    entry: Entry,
    groups: &[Group<Job>],
    makes: bool,
) -> Result<There, Failed> {
    let places: Vec<&ScopeId> = groups.iter().map(|group| &group.scope_id).collect();
    let mut names: Vec<&str> =
        places.iter().filter(|_| makes).map(|scope_id| scope_id.series.as_str()).collect();
    names.dedup();
    let keys = IdempotencyKeys::of(groups.iter().flat_map(|group| &group.jobs).map(|job| &job.request));
    let asked = keys.first_uses();
    let (began, entered, inserted, series, cursors) = tokio::join!(
        biased;
        session.begin(),
        shared.truth.enter(session, entry),
        document::insert_keys(session, &asked, entry.batch),
        sql::lock_series(session, &names),
        sql::lock_cursors(session, &places)
    );
    began?;
    entered?;
    let known = known(session, &asked, inserted?, entry).await?;
    let lacks = || Failed::Passing("a key that was inserted is not there".into());
    let mut there = There { keys: keys.learn(known).ok_or_else(lacks)?, ..There::default() };
    there.series.extend(series?);
    for sql::Locked { at, cursor, adopted_to, promise } in cursors? {
        let requests = groups[at].jobs.iter().map(|job| &job.request);
        let mut adopted = AdoptedPositions::for_requests(cursor, adopted_to, requests);
        while let Some(page) = adopted.missing_page() {
            adopted.add_page(read::adopted(session, places[at], page.from, page.limit).await?);
        }
        let scope = ScopeBefore { cursor: Some(cursor), promise, adopted, ..ScopeBefore::default() };
        there.scopes.insert(at, scope);
    }
    Ok(there)
}

/// Mostly all keys were inserted, and there is nothing to read.
async fn known(
    session: &Session,
    asked: &[(&IdempotencyKey, KeyUse)],
    inserted: u64,
    entry: Entry,
) -> Result<Vec<KeyState>, Failed> {
    if inserted == asked.len() as u64 {
        return Ok(vec![KeyState::New; asked.len()]);
    }
    Ok(document::known_keys(session, asked, entry.batch).await?)
}

/// In exhausted scopes, learns which nodes still hold positions, under the locks.
async fn learn_holders(
    shared: &Shared,
    session: &Session,
    groups: &[Group<Job>],
    decisions: &mut Decisions,
) -> Result<(), Failed> {
    let exhausted = groups.iter().zip(decisions).filter_map(|(group, decision)| {
        Some((&group.scope_id, decision.as_mut().filter(|each| each.is_exhausted())?))
    });
    let mut exhausted: Vec<(&ScopeId, &mut Decision)> = exhausted.collect();
    if exhausted.is_empty() {
        return Ok(());
    }
    let asked: Vec<(&ScopeId, u64)> = exhausted
        .iter()
        .map(|(scope_id, decision)| (*scope_id, decision.change.used_to_if_exhausted.unwrap_or(0)))
        .collect();
    for sql::Holders { at, is_spent, elsewhere } in sql::holders(session, &asked, shared.truth.node).await? {
        exhausted[at].1.set_holders(is_spent, elsewhere);
    }
    Ok(())
}

fn decide_all(there: &mut There, groups: &[Group<Job>], makes: bool) -> Decisions {
    let There { series: all, scopes, keys } = there;
    let each = groups.iter().enumerate().map(|(at, group)| {
        let mut series = all.get_mut(group.scope_id.series.as_str());
        let before = match (scopes.remove(&at), &series) {
            (Some(scope), _) => scope,
            (None, _) if !makes => return None,
            (None, Some(LockedSeries { before, promise })) => {
                ScopeBefore { series: Some(*before), promise: *promise, ..ScopeBefore::default() }
            }
            (None, None) => ScopeBefore::default(),
        };
        let requests = group.jobs.iter().map(|job| &job.request);
        let decision = decide(&before, &group.scope_id, requests, keys);
        if let (true, Some(series)) = (decision.change.is_new, &mut series) {
            series.before.scopes += 1;
        }
        Some(decision)
    });
    each.collect()
}
