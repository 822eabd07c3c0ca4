//! One try of a batch: one transaction, two round trips. Owns the line between what is surely not committed and what
//! may be.

use std::collections::BTreeMap;

use bates_core::{Cursor, Lease, Place};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::Job;
use super::Shared;
use super::queue::Group;
use super::reckon::{Found, Reckoned, reckon};
use super::sql::{self, Table};
use crate::error::{Failed, OpenError, told};
use crate::session::Session;
use crate::truth::Entry;

const GRANTED_BEFORE: &str = "a cursor stands below positions that were granted before: somebody moved it back, or \
    restored a part of the database. Nothing is issued, because numbers would come again. Raise the cursors above all \
    that was issued with `bates floor`, then run `bates floor --accept-timeline`";

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
    let late = |_| Failed::Passing("it did not answer in time".into());
    let patience = shared.settings.patience;
    let session = tokio::time::timeout(patience, Session::take(&shared.pool, shared.settings))
        .await
        .map_err(late)??;
    let entry = shared.truth.entry(line);
    let found = tokio::time::timeout(patience, read(shared, &session, entry, groups, makes))
        .await
        .map_err(late)??;
    board(shared, groups);
    let reckonings = reckon_all(&found, groups, makes);
    if reckonings.iter().flatten().all(|reckoned| reckoned.moved.is_none()) {
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
struct There {
    series: BTreeMap<String, u64>,
    cursors: BTreeMap<usize, Cursor>,
}

/// The first round trip: begins, enters the batch on its line, locks and reads.
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
    let (began, entered, series, cursors) = tokio::join!(
        biased;
        session.begin(),
        shared.truth.enter(session, entry),
        sql::lock_series(session, &names),
        sql::lock_cursors(session, &places)
    );
    began?;
    entered?;
    Ok(There { series: series?.into_iter().collect(), cursors: cursors?.into_iter().collect() })
}

fn reckon_all(there: &There, groups: &[Group<Job>], makes: bool) -> Reckonings {
    let mut scopes = there.series.clone();
    let each = groups.iter().enumerate().map(|(at, group)| {
        let series = scopes.get_mut(group.place.series.as_str());
        let found = match (there.cursors.get(&at), &series) {
            (Some(cursor), _) => Found::Cursor(*cursor),
            (None, _) if !makes => return None,
            (None, Some(scopes)) => Found::New { scopes: **scopes },
            (None, None) => Found::NoSeries,
        };
        let reckoned = reckon(found, group.jobs.iter().map(|job| &job.ask));
        if let (Found::New { .. }, Some(_), Some(scopes)) = (found, reckoned.moved, series) {
            *scopes += 1;
        }
        Some(reckoned)
    });
    each.collect()
}

/// What a batch writes, table by table.
struct Writes<'b> {
    moved: Vec<(&'b Place, Cursor)>,
    made: Vec<(&'b str, u64)>,
    issued: Vec<(&'b Place, Lease)>,
    leased: Vec<(&'b Place, Lease)>,
    returned: Vec<(&'b Place, u64)>,
}

enum Uncommitted {
    Surely(Failed),
    Perhaps(Box<str>),
}

impl<'b> Writes<'b> {
    fn of(groups: &'b [Group<Job>], there: &There, reckonings: &'b Reckonings) -> Self {
        let mut made: BTreeMap<&str, u64> = BTreeMap::new();
        let mut writes =
            Self { moved: vec![], made: vec![], issued: vec![], leased: vec![], returned: vec![] };
        for (at, (Group { place, .. }, reckoned)) in groups.iter().zip(reckonings).enumerate() {
            let Some(reckoned) = reckoned else { continue };
            let Some(moved) = reckoned.moved else { continue };
            writes.moved.push((place, moved));
            if !there.cursors.contains_key(&at) {
                *made.entry(place.series.as_str()).or_default() += 1;
            }
            writes.issued.extend(reckoned.issued.iter().map(|lease| (place, *lease)));
            writes.leased.extend(reckoned.leased.iter().map(|lease| (place, *lease)));
            writes.returned.extend(reckoned.returned.iter().map(|from| (place, *from)));
        }
        writes.made = made.into_iter().collect();
        writes
    }

    /// The second round trip: writes and commits. If anything before the commit is refused, PostgreSQL makes a
    /// rollback of it.
    async fn commit(&self, shared: &Shared, session: &Session, entry: Entry) -> Result<(), Uncommitted> {
        let by = (shared.truth.node, entry.batch);
        let (returned, moved, made, issued, leased, committed) = tokio::join!(
            biased;
            sql::shorten_leases(session, &self.returned),
            sql::move_cursors(session, &self.moved),
            sql::count_scopes(session, &self.made),
            sql::write_ranges(session, Table::Ledger, &self.issued, by),
            sql::write_ranges(session, Table::Lease, &self.leased, by),
            session.batch_execute("COMMIT")
        );
        let before = returned.and(moved).and(made).and(issued).and(leased);
        match (before, committed) {
            (Ok(()), Ok(())) => Ok(()),
            // The commit was answered, and after a refusal it is a rollback. That alone proves it: PgBouncer tells of
            // a server that it lost in the same way as of a statement that was refused.
            (Err(error), Ok(())) => Err(Uncommitted::Surely(refused(error))),
            (_, Err(error)) => Err(Uncommitted::Perhaps(told_of(&error))),
        }
    }
}

fn refused(error: Error) -> Failed {
    if error.code() == Some(&SqlState::UNIQUE_VIOLATION) {
        return Failed::Refused(OpenError::Stopped(GRANTED_BEFORE.into()));
    }
    error.into()
}

fn told_of(error: &Error) -> Box<str> {
    format!("the connection broke during a commit: {}", told(error)).into()
}
