//! One try of a batch: one transaction, two round trips. Owns the line between what is surely not committed and what
//! may be.

use std::collections::BTreeMap;
use std::time::Duration;

use bates_core::{Cursor, Place, Promise};

use super::aside::{Aside, FREE_MIN};
use super::keys::{Key, Keys, Known, Request};
use super::queue::Group;
use super::reckon::{Ask, Found, Reckoned, reckon};
use super::sql::LockedSeries;
use super::writes::{Uncommitted, Writes};
use super::{Job, Shared, document, sql};
use crate::error::Failed;
use crate::session::Session;
use crate::truth::Entry;

/// What is to be written for each group; `None` for one whose scope is not there and was not to be made.
pub(crate) type Reckonings = Vec<Option<Reckoned>>;

/// A try that did not end well.
pub(crate) enum Broken {
    /// Nothing is committed.
    Failed(Failed),
    /// The connection broke while it was being committed.
    Unknown { entry: Entry, reckonings: Reckonings, reason: Box<str> },
}

impl<E: Into<Failed>> From<E> for Broken {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Serves the groups in one transaction. New scopes are only made if `makes` says so: whoever makes them locks their
/// series first and then cursors, so whoever does not must never wait for a series while it holds a cursor.
pub(crate) async fn attempt(
    shared: &Shared,
    line: i32,
    groups: &mut [Group<Job>],
    makes: bool,
) -> Result<Reckonings, Broken> {
    let patience = shared.settings.patience;
    let session = in_time(patience, Session::take(&shared.pool, shared.settings)).await?;
    let entry = shared.truth.entry(line);
    let mut found = in_time(patience, read(shared, &session, entry, groups, makes)).await?;
    board(shared, groups);
    let mut reckonings = reckon_all(&mut found, groups, makes);
    in_time(patience, learn_holders(shared, &session, groups, &mut reckonings)).await?;
    if reckonings.iter().flatten().all(Reckoned::is_nothing) {
        // Nothing is written, whatever becomes of it; where it is not answered, the connection is closed.
        if let Ok(Ok(())) = tokio::time::timeout(patience, session.batch_execute("ROLLBACK")).await {
            session.give_back();
        }
        return Ok(reckonings);
    }
    let committed = {
        let writes = Writes::of(groups, &found, &reckonings);
        tokio::time::timeout(patience, writes.commit(shared, &session, entry)).await
    };
    match committed.unwrap_or_else(|_| Err(Uncommitted::Perhaps("it did not answer in time".into()))) {
        Ok(()) => {
            session.give_back();
            shared.truth.committed(entry);
            Ok(reckonings)
        }
        Err(Uncommitted::Surely(failed)) => Err(Broken::Failed(failed)),
        Err(Uncommitted::Perhaps(reason)) => Err(Broken::Unknown { entry, reckonings, reason }),
    }
}

/// Work that a caller waits for, and not for ever.
async fn in_time<T, E: Into<Failed>>(
    patience: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failed> {
    match tokio::time::timeout(patience, work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(Failed::Passing("it did not answer in time".into())),
    }
}

/// The locks are held: from here on nobody else has a turn at these scopes.
fn board(shared: &Shared, groups: &mut [Group<Job>]) {
    shared.queue.lock().board(groups);
    let era = shared.truth.era();
    for group in groups {
        group.leave_out_who_gave_up();
        group.leave_tails_of_before(era);
    }
}

/// What is there before a batch.
#[derive(Default)]
pub(super) struct There {
    series: BTreeMap<String, LockedSeries>,
    pub(super) cursors: BTreeMap<usize, Cursor>,
    /// What the series of these cursors promise.
    promises: BTreeMap<usize, Promise>,
    /// What was set aside in some of the scopes.
    aside: BTreeMap<usize, Aside>,
    /// Those of calls that were there before the locks were taken.
    pub(super) keys: Keys,
}

/// The first round trip: begins, enters the batch on its line, locks and reads. Invariant: keys, then series, then
/// cursors, each in their order, on every node: whoever waits for a key holds nothing that its owner will wait for.
async fn read(
    shared: &Shared,
    session: &Session,
    entry: Entry,
    groups: &[Group<Job>],
    makes: bool,
) -> Result<There, Failed> {
    let places: Vec<&Place> = groups.iter().map(|group| &group.place).collect();
    let mut names: Vec<&str> = places.iter().filter(|_| makes).map(|place| place.series.as_str()).collect();
    names.dedup();
    let keys = Keys::of(groups);
    let asked = keys.inserted();
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
    for sql::Locked { at, cursor, aside_to, promise } in cursors? {
        there.promises.extend(promise.map(|promise| (at, promise)));
        // Few scopes have any, and none once they are passed.
        let (from, free) = reach(&groups[at].jobs, cursor.next);
        if aside_to > from {
            there.aside.insert(at, Aside::read(session, places[at], from, free).await?);
        }
        there.cursors.insert(at, cursor);
    }
    Ok(there)
}

/// From where on positions may be granted by these calls, and how many are surely enough for them, and for those that
/// board meanwhile.
fn reach(jobs: &[Job], next: u64) -> (u64, u64) {
    let (mut from, mut free) = (next, 0_u64);
    for job in jobs {
        match &job.ask {
            Ask::Grant(want) => free = free.saturating_add(want.count),
            Ask::Surrender(tail) => from = from.min(tail.lease.from()),
            Ask::Assign(_) => free = free.max(FREE_MIN),
        }
    }
    // Whether the cursor goes back is not known yet.
    (from, free.saturating_mul(4).max(FREE_MIN / 10).saturating_add(next - from))
}

/// What the keys stand for. Mostly all of them were inserted, and there is nothing to read.
async fn known(
    session: &Session,
    asked: &[(&Key, Request)],
    inserted: u64,
    entry: Entry,
) -> Result<Vec<Known>, Failed> {
    if inserted == asked.len() as u64 {
        return Ok(vec![Known::Ours; asked.len()]);
    }
    Ok(document::known_keys(session, asked, entry.batch).await?)
}

/// Where nothing is left to grant, who still holds some. Read under the locks: who would be granted more waits.
async fn learn_holders(
    shared: &Shared,
    session: &Session,
    groups: &[Group<Job>],
    reckonings: &mut Reckonings,
) -> Result<(), Failed> {
    let mut exhausted: Vec<(&Place, &mut Reckoned)> = groups
        .iter()
        .zip(reckonings)
        .filter_map(|(group, reckoned)| {
            Some((&group.place, reckoned.as_mut().filter(|each| each.is_exhausted())?))
        })
        .collect();
    if exhausted.is_empty() {
        return Ok(());
    }
    let asked: Vec<(&Place, u64)> =
        exhausted.iter().map(|(place, reckoned)| (*place, reckoned.spent_to.unwrap_or(0))).collect();
    for sql::Holders { at, is_spent, elsewhere } in sql::holders(session, &asked, shared.truth.node).await? {
        exhausted[at].1.learn_holders(is_spent, elsewhere);
    }
    Ok(())
}

fn reckon_all(there: &mut There, groups: &[Group<Job>], makes: bool) -> Reckonings {
    let There { series: all, cursors, promises, aside, keys } = there;
    let nothing = Aside::default();
    let each = groups.iter().enumerate().map(|(at, group)| {
        let series = all.get_mut(group.place.series.as_str());
        let promise = promises.get(&at).copied().or(series.as_ref().and_then(|series| series.promise));
        let found = match (cursors.get(&at), &series) {
            (Some(cursor), _) => Found::Cursor(*cursor),
            (None, _) if !makes => return None,
            (None, Some(series)) => Found::New { scopes: series.scopes },
            (None, None) => Found::NoSeries,
        };
        let reckoned = reckon(
            (found, promise),
            aside.get(&at).unwrap_or(&nothing),
            group.jobs.iter().map(|job| &job.ask),
            keys,
        );
        if let (Found::New { .. }, Some(_), Some(series)) = (found, reckoned.moved, series) {
            series.scopes += 1;
        }
        Some(reckoned)
    });
    each.collect()
}
