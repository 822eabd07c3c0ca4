//! Whether the database still has all commits that this node has made.
//!
//! A node commits on several *lines*, each one batch after the other; `bates.last_commit` has a row for each line. A
//! database that was restored, or failed over to a lagging standby, has a prefix of the commits that were made. So it has
//! all commits of this node if it has the last commit of each line, which the first statement of every batch checks.
//! Must never let a batch commit on a database that lacks commits. Invariant: only an operator ends a stop.

use std::collections::BTreeMap;

use bates_core::Operation;
use parking_lot::Mutex;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::batch::sql::get_u64;
use crate::connect::check_disk;
use crate::error::{Failure, OpenError};
use crate::holding;
use crate::moving::lock_unmarked;
use crate::operation;
use crate::session::Session;

/// The state of the store, as columns after `SELECT` or `RETURNING`.
macro_rules! store_state {
    () => {
        "(SELECT stopped FROM bates.store),
         (SELECT timeline FROM bates.store),
         (SELECT acceptances FROM bates.store),
         ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
         current_setting('fsync'),
         current_setting('full_page_writes')"
    };
}

const LOAD: &str = concat!("SELECT ", store_state!(), ", (SELECT recalls FROM bates.store)");

/// Writes the batch to the row of its line, and counts the lines that still have the last commit known to this node.
const RECORD: &str = concat!(
    "INSERT INTO bates.last_commit (node, line, batch, number) VALUES ($1, $2, $3, $4)
     ON CONFLICT (node, line) DO UPDATE
         SET batch = excluded.batch, number = excluded.number, committed_at = now()
     RETURNING ",
    store_state!(),
    ", (SELECT count(*) FROM UNNEST($5, $6) AS known (line, number)
        JOIN bates.last_commit AS stored ON stored.node = $1 AND stored.line = known.line
        WHERE stored.number >= known.number)"
);

const CHECK: &str = concat!(
    "SELECT ",
    store_state!(),
    ", (SELECT count(*) FROM UNNEST($2, $3) AS known (line, number)
        JOIN bates.last_commit AS stored ON stored.node = $1 AND stored.line = known.line
        WHERE stored.number >= known.number),
       (SELECT recalls FROM bates.store), (SELECT revision FROM bates.store)"
);

/// Waits for a transaction that writes the line, and returns the last batch committed on it.
const LOOK_UP: &str =
    "INSERT INTO bates.last_commit AS stored (node, line, batch, number) VALUES ($1, $2, $3, 0)
     ON CONFLICT (node, line) DO UPDATE SET number = stored.number
     RETURNING batch";

/// Max lines that a node compares: more than it ever has under way at once.
const LINES_MAX: usize = 1_000;

pub(crate) struct Lineage {
    pub(crate) node: Uuid,
    known: Mutex<LineageState>,
}

#[derive(Clone, Default)]
struct LineageState {
    /// When an operator last accepted the database as it is; 0 if never.
    accepted_at: i64,
    /// The number of the last commit on each line.
    numbers: BTreeMap<i32, i64>,
    last_number: i64,
    last_recall: i64,
    is_stopped: bool,
    era: u64,
}

/// The row that a batch writes to `bates.last_commit`, by which its commit is looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitId {
    pub(crate) line: i32,
    pub(crate) batch: Uuid,
    number: i64,
}

impl Lineage {
    pub(crate) fn new(node: Uuid) -> Self {
        Self { node, known: Mutex::default() }
    }

    pub(crate) fn next_commit(&self, line: i32) -> CommitId {
        let mut known = self.known.lock();
        known.last_number += 1;
        CommitId { line, batch: Uuid::now_v7(), number: known.last_number }
    }

    /// The first statement of a batch, in its transaction. Refuses a database that lacks commits or is stopped.
    pub(crate) async fn record_and_check(&self, session: &Session, commit: CommitId) -> Result<(), Failure> {
        let known = self.known.lock().clone();
        let (lines, numbers): (Vec<i32>, Vec<i64>) = known.numbers.into_iter().unzip();
        let CommitId { line, batch, number } = commit;
        let rows = session.query(RECORD, &[&self.node, &line, &batch, &number, &lines, &numbers]).await?;
        let Some(row) = rows.first() else { return Err(Failure::Refused(OpenError::Emptied)) };
        if self.is_accepted_since(row, known.accepted_at, lines.len())? {
            return Err(Failure::Transient("an operator has accepted the database as it is".into()));
        }
        Ok(())
    }

    /// Refuses a stopped or restored database. Returns whether an operator has accepted it since.
    fn is_accepted_since(&self, row: &Row, known: i64, lines: usize) -> Result<bool, Failure> {
        let compared = self.compare(row, known, lines);
        match &compared {
            Err(Failure::Refused(OpenError::Stopped(_))) => self.stopped(),
            // The stop is over: the next one begins another era.
            Ok(_) => self.known.lock().is_stopped = false,
            Err(_) => {}
        }
        compared
    }

    fn compare(&self, row: &Row, known: i64, lines: usize) -> Result<bool, Failure> {
        check_store(row)?;
        let accepted_at: i64 = row.get(2);
        if accepted_at > known {
            self.accepted(accepted_at);
            return Ok(true);
        }
        let lacks = row.get::<_, i64>(6) != i64::try_from(lines).unwrap_or(i64::MAX);
        // An earlier acceptance than known: the database was restored to a state before the last one.
        if lacks || accepted_at < known {
            return Err(Failure::Refused(OpenError::Stopped(COMMITS_MISSING.into())));
        }
        Ok(false)
    }

    /// An operator has accepted the database, so earlier commits no longer count. Several batches may report the same
    /// acceptance; only the first clears them. Invariant: the count of batches never falls.
    fn accepted(&self, accepted_at: i64) {
        let mut known = self.known.lock();
        if known.accepted_at < accepted_at {
            known.accepted_at = accepted_at;
            known.numbers.clear();
            known.era += 1;
            known.is_stopped = false;
        }
    }

    /// The store is stopped: positions granted before may be granted again, so a new era begins.
    fn stopped(&self) {
        let mut known = self.known.lock();
        known.era += u64::from(!known.is_stopped);
        known.is_stopped = true;
    }

    pub(crate) fn accepted_at(&self) -> i64 {
        self.known.lock().accepted_at
    }

    pub(crate) fn last_recall(&self) -> i64 {
        self.known.lock().last_recall
    }

    pub(crate) fn era(&self) -> u64 {
        self.known.lock().era
    }

    /// Checks the database without writing. Returns the revision of the series.
    pub(crate) async fn check(&self, session: &Session) -> Result<u64, Failure> {
        let known = self.known.lock().clone();
        let (lines, numbers): (Vec<i32>, Vec<i64>) = known.numbers.into_iter().unzip();
        let rows = session.query(CHECK, &[&self.node, &lines, &numbers]).await?;
        let Some(row) = rows.first() else { return Err(Failure::Refused(OpenError::Emptied)) };
        // Before the check: a node answers recalls even if the store has stopped.
        self.known.lock().last_recall = row.try_get(7).unwrap_or(known.last_recall);
        self.is_accepted_since(row, known.accepted_at, lines.len())?;
        Ok(get_u64(row, 8))
    }

    pub(crate) fn committed(&self, commit: CommitId) {
        let mut known = self.known.lock();
        let number = known.numbers.entry(commit.line).or_default();
        *number = commit.number.max(*number);
        // The oldest line was replaced long ago: a database with any later commit has its commit too.
        if known.numbers.len() > LINES_MAX {
            let oldest = known.numbers.iter().min_by_key(|(_, number)| **number).map(|(line, _)| *line);
            oldest.map(|line| known.numbers.remove(&line));
        }
    }

    /// Whether a batch was committed. Waits for its transaction, which locks the line: a batch not there now never will be.
    pub(crate) async fn look_up(&self, session: &Session, commit: CommitId) -> Result<bool, Failure> {
        let nil = Uuid::nil();
        let rows = session.query_once(LOOK_UP, &[&self.node, &commit.line, &nil]).await?;
        Ok(rows.first().is_some_and(|row| row.get::<_, Uuid>(0) == commit.batch))
    }

    /// Loads the state of the store for a new node.
    pub(crate) async fn load(&self, session: &Session) -> Result<(), Failure> {
        let rows = session.query(LOAD, &[]).await?;
        let row = rows.first().ok_or(Failure::Refused(OpenError::Emptied))?;
        let emptied = |_| Failure::Refused(OpenError::Emptied);
        let (accepted_at, last_recall) = (row.try_get(2).map_err(emptied)?, row.try_get(6).map_err(emptied)?);
        *self.known.lock() = LineageState { accepted_at, last_recall, ..LineageState::default() };
        check_store(row)
    }
}

pub(crate) const COMMITS_MISSING: &str = "the database lacks what this node committed: an old backup was restored, or a \
    lagging standby was promoted. Nothing is issued, because numbers would repeat. Raise the cursors above all issued \
    numbers with `bates floor`, then run `bates floor --accept-timeline`";

fn check_store(row: &Row) -> Result<(), Failure> {
    let stopped = |reason: String| Err(Failure::Refused(OpenError::Stopped(reason.into())));
    let emptied = |_| Failure::Refused(OpenError::Emptied);
    let accepted: i64 = row.try_get(1).map_err(emptied)?;
    let timeline: i64 = row.get(3);
    if let Some(reason) = row.get::<_, Option<String>>(0) {
        return stopped(reason);
    }
    if timeline != accepted {
        return stopped(format!(
            "PostgreSQL is on timeline {timeline}, but numbers were last issued on timeline {accepted}: a standby was \
             promoted or a backup restored, and commits may be missing. If so, raise the cursors above all issued \
             numbers with `bates floor`. Then run `bates floor --accept-timeline`; until then nothing is issued"
        ));
    }
    check_disk(row.get(4), row.get(5)).map_err(Failure::Refused)
}

/// Stops all nodes; an earlier reason stays. Does nothing if an operator has accepted the database after `accepted_at`, the
/// last acceptance that the node knew: the operator has accepted what the node found.
pub(crate) async fn stop(session: &Session, reason: &str, accepted_at: i64) -> Result<(), Failure> {
    let sql = "UPDATE bates.store SET stopped = $1 WHERE stopped IS NULL AND acceptances <= $2";
    session.query_once(sql, &[&reason, &accepted_at]).await.map(drop)
}

/// Lets all nodes continue with the database as it is, and returns its timeline. Refused if the store is marked.
/// Acceptances are times: one after a restore must be above those that the restored database lost.
pub(crate) async fn accept(session: &Session, operation: Option<&Operation>) -> Result<i64, Failure> {
    // Pools may hold positions of lost commits: each begins a new epoch.
    let sql = "WITH pools AS (UPDATE bates.pool SET server_run = NULL, server_replication = NULL)
               UPDATE bates.store SET
                   acceptances = greatest(acceptances + 1, (extract(epoch FROM now()) * 1000000)::bigint),
                   stopped = NULL,
                   timeline = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
               RETURNING timeline";
    session.begin().await?;
    // Waits for batches under way: the next statements must see their ranges.
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    lock_unmarked(session).await?;
    let rows = session.query(sql, &[]).await?;
    holding::write_off(session, "true", &[]).await?;
    operation::append(session, operation).await?;
    session.commit().await?;
    rows.first().map(|row| row.get(0)).ok_or(Failure::Refused(OpenError::Emptied))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptance_counts_once_and_batch_numbers_keep_rising() {
        let lineage = Lineage::new(Uuid::nil());
        lineage.committed(lineage.next_commit(0));
        lineage.accepted(1);
        let later = lineage.next_commit(1);
        lineage.committed(later);
        // A batch that was under way during the acceptance reports it last.
        lineage.accepted(1);
        assert_eq!(lineage.known.lock().numbers, BTreeMap::from([(1, later.number)]));
        assert!(
            lineage.next_commit(1).number > later.number,
            "otherwise the next commit would look like an earlier one"
        );
    }
}
