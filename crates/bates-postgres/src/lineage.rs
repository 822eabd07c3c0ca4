//! Whether the database still is what this node knew: the same history, with all that the node committed in it.
//!
//! PostgreSQL that was restored, or failed over to a standby that lagged, is an earlier state of itself. Its commits
//! are a prefix of those that were made, so it holds all that this node committed if it holds the last commit of
//! each of the node's lines. That is asked in the statement that each batch begins with.
//! Must never let a batch commit on a database that was taken back. Invariant: nothing but an operator ends a stop.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::batch::sql::whole;
use crate::connect::check_disk;
use crate::error::{Failed, OpenError};
use crate::holding;
use crate::moving::lock_unmarked;
use crate::session::Session;

/// Columns that follow a `SELECT` or a `RETURNING`.
macro_rules! said_of_itself {
    () => {
        "(SELECT stopped FROM bates.store),
         (SELECT timeline FROM bates.store),
         (SELECT acceptances FROM bates.store),
         ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
         current_setting('fsync'),
         current_setting('full_page_writes')"
    };
}

const ASK: &str = concat!("SELECT ", said_of_itself!(), ", (SELECT recalls FROM bates.store)");

/// Enters the batch on its line, and counts the lines that still have the last commit that the node knows of.
const ENTER: &str = concat!(
    "INSERT INTO bates.last_commit (node, line, batch, number) VALUES ($1, $2, $3, $4)
     ON CONFLICT (node, line) DO UPDATE
         SET batch = excluded.batch, number = excluded.number, committed_at = now()
     RETURNING ",
    said_of_itself!(),
    ", (SELECT count(*) FROM UNNEST($5, $6) AS known (line, number)
        JOIN bates.last_commit AS found ON found.node = $1 AND found.line = known.line
        WHERE found.number >= known.number)"
);

const WATCH: &str = concat!(
    "SELECT ",
    said_of_itself!(),
    ", (SELECT count(*) FROM UNNEST($2, $3) AS known (line, number)
        JOIN bates.last_commit AS found ON found.node = $1 AND found.line = known.line
        WHERE found.number >= known.number),
       (SELECT recalls FROM bates.store), (SELECT revision FROM bates.store)"
);

/// Waits for a transaction that writes the line, and answers with the batch that was committed on it last.
const LOOK_UP: &str =
    "INSERT INTO bates.last_commit AS found (node, line, batch, number) VALUES ($1, $2, $3, 0)
     ON CONFLICT (node, line) DO UPDATE SET number = found.number
     RETURNING batch";

/// Lines that a node compares: more than it ever has under way together.
const LINES_MAX: usize = 1_000;

pub(crate) struct Lineage {
    pub(crate) node: Uuid,
    known: Mutex<Known>,
}

#[derive(Clone, Default)]
struct Known {
    /// The last time an operator accepted the database as it is; 0 if never.
    acceptances: i64,
    numbers: BTreeMap<i32, i64>,
    last: i64,
    last_recall: i64,
    is_stopped: bool,
    era: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) line: i32,
    pub(crate) batch: Uuid,
    number: i64,
}

impl Lineage {
    pub(crate) fn new(node: Uuid) -> Self {
        Self { node, known: Mutex::default() }
    }

    pub(crate) fn entry(&self, line: i32) -> Entry {
        let mut known = self.known.lock();
        known.last += 1;
        Entry { line, batch: Uuid::now_v7(), number: known.last }
    }

    /// Enters a batch within its transaction; refuses if the database was taken back or stopped.
    pub(crate) async fn enter(&self, session: &Session, entry: Entry) -> Result<(), Failed> {
        let known = self.known.lock().clone();
        let (lines, numbers): (Vec<i32>, Vec<i64>) = known.numbers.into_iter().unzip();
        let Entry { line, batch, number } = entry;
        let rows = session.query(ENTER, &[&self.node, &line, &batch, &number, &lines, &numbers]).await?;
        let Some(row) = rows.first() else { return Err(Failed::Refused(OpenError::Emptied)) };
        if self.is_accepted_since(row, known.acceptances, lines.len())? {
            return Err(Failed::Passing("an operator has accepted the database as it is".into()));
        }
        Ok(())
    }

    /// Refuses a stopped or restored database. Answers whether an operator has accepted it since.
    fn is_accepted_since(&self, row: &Row, known: i64, lines: usize) -> Result<bool, Failed> {
        let judged = self.compare(row, known, lines);
        match &judged {
            Err(Failed::Refused(OpenError::Stopped(_))) => self.stopped(),
            // A pause that is over: the next stop is another one.
            Ok(_) => self.known.lock().is_stopped = false,
            Err(_) => {}
        }
        judged
    }

    fn compare(&self, row: &Row, known: i64, lines: usize) -> Result<bool, Failed> {
        judge(row)?;
        let acceptances: i64 = row.get(2);
        if acceptances > known {
            self.accepted(acceptances);
            return Ok(true);
        }
        let lacks = row.get::<_, i64>(6) != i64::try_from(lines).unwrap_or(i64::MAX);
        // An earlier acceptance than before: the database was taken back behind the last one.
        if lacks || acceptances < known {
            return Err(Failed::Refused(OpenError::Stopped(TAKEN_BACK.into())));
        }
        Ok(false)
    }

    /// An operator has accepted the database: what was known before no longer counts. Several batches may learn of it;
    /// only the first forgets. Invariant: the count of batches never falls.
    fn accepted(&self, acceptances: i64) {
        let mut known = self.known.lock();
        if known.acceptances < acceptances {
            known.acceptances = acceptances;
            known.numbers.clear();
            known.era += 1;
            known.is_stopped = false;
        }
    }

    /// The database is stopped: what was granted before may be granted again.
    fn stopped(&self) {
        let mut known = self.known.lock();
        known.era += u64::from(!known.is_stopped);
        known.is_stopped = true;
    }

    pub(crate) fn acceptances(&self) -> i64 {
        self.known.lock().acceptances
    }

    pub(crate) fn last_recall(&self) -> i64 {
        self.known.lock().last_recall
    }

    pub(crate) fn era(&self) -> u64 {
        self.known.lock().era
    }

    /// Checks the database without writing; answers how often series were described.
    pub(crate) async fn watch(&self, session: &Session) -> Result<u64, Failed> {
        let known = self.known.lock().clone();
        let (lines, numbers): (Vec<i32>, Vec<i64>) = known.numbers.into_iter().unzip();
        let rows = session.query(WATCH, &[&self.node, &lines, &numbers]).await?;
        let Some(row) = rows.first() else { return Err(Failed::Refused(OpenError::Emptied)) };
        // Also in a store that has stopped: a node answers recalls there, too.
        self.known.lock().last_recall = row.try_get(7).unwrap_or(known.last_recall);
        self.is_accepted_since(row, known.acceptances, lines.len())?;
        Ok(whole(row, 8))
    }

    pub(crate) fn committed(&self, entry: Entry) {
        let mut known = self.known.lock();
        let number = known.numbers.entry(entry.line).or_default();
        *number = entry.number.max(*number);
        // A line that was given up long ago: commits that began after its last one was known are there.
        if known.numbers.len() > LINES_MAX {
            let oldest = known.numbers.iter().min_by_key(|(_, number)| **number).map(|(line, _)| *line);
            oldest.map(|line| known.numbers.remove(&line));
        }
    }

    /// Whether a batch was committed. A transaction that is about to commit it holds its line, and this waits for that: a
    /// batch that is not there now never will be.
    pub(crate) async fn look_up(&self, session: &Session, entry: Entry) -> Result<bool, Failed> {
        let nil = Uuid::nil();
        let rows = session.query_once(LOOK_UP, &[&self.node, &entry.line, &nil]).await?;
        Ok(rows.first().is_some_and(|row| row.get::<_, Uuid>(0) == entry.batch))
    }

    pub(crate) async fn learn(&self, session: &Session) -> Result<(), Failed> {
        let rows = session.query(ASK, &[]).await?;
        let row = rows.first().ok_or(Failed::Refused(OpenError::Emptied))?;
        let emptied = |_| Failed::Refused(OpenError::Emptied);
        let (acceptances, last_recall) = (row.try_get(2).map_err(emptied)?, row.try_get(6).map_err(emptied)?);
        *self.known.lock() = Known { acceptances, last_recall, ..Known::default() };
        judge(row)
    }
}

pub(crate) const TAKEN_BACK: &str = "the database lacks what this node committed: it was restored from an old backup, or a \
    standby that lagged was promoted. Nothing is issued, because numbers would come again. Raise the cursors above \
    all that was issued with `bates floor`, then run `bates floor --accept-timeline`";

fn judge(row: &Row) -> Result<(), Failed> {
    let stopped = |reason: String| Err(Failed::Refused(OpenError::Stopped(reason.into())));
    let emptied = |_| Failed::Refused(OpenError::Emptied);
    let accepted: i64 = row.try_get(1).map_err(emptied)?;
    let timeline: i64 = row.get(3);
    if let Some(reason) = row.get::<_, Option<String>>(0) {
        return stopped(reason);
    }
    if timeline != accepted {
        return stopped(format!(
            "PostgreSQL is on timeline {timeline}, and numbers were last issued on timeline {accepted}: a standby was \
             promoted or a backup restored, and commits may be missing. Nothing is issued. Where they are, raise the \
             cursors above all that was issued with `bates floor`; then run `bates floor --accept-timeline`"
        ));
    }
    check_disk(row.get(4), row.get(5)).map_err(Failed::Refused)
}

/// Stops all nodes; an earlier reason stays. Does nothing if an operator has accepted the database after the acceptance
/// `seen`: the operator accepted what the node saw.
pub(crate) async fn stop(session: &Session, reason: &str, seen: i64) -> Result<(), Failed> {
    let sql = "UPDATE bates.store SET stopped = $1 WHERE stopped IS NULL AND acceptances <= $2";
    session.query_once(sql, &[&reason, &seen]).await.map(drop)
}

/// Lets all nodes go on with the database as it is, and answers with its timeline. Refused if the store is marked.
/// Acceptances go by the clock: one after a restore must be above those that the restored database knows nothing of.
pub(crate) async fn accept(session: &Session) -> Result<i64, Failed> {
    // Pools may hold positions of lost commits: each is begun anew.
    let sql = "WITH pools AS (UPDATE bates.pool SET server_run = NULL, server_replication = NULL)
               UPDATE bates.store SET
                   acceptances = greatest(acceptances + 1, (extract(epoch FROM now()) * 1000000)::bigint),
                   stopped = NULL,
                   timeline = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
               RETURNING timeline";
    session.begin().await?;
    // A batch under way may have been granted a range that the next statement does not see.
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    lock_unmarked(session).await?;
    let rows = session.query(sql, &[]).await?;
    holding::write_off(session, "true", &[]).await?;
    session.commit().await?;
    rows.first().map(|row| row.get(0)).ok_or(Failed::Refused(OpenError::Emptied))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptance_counts_once_and_batch_numbers_keep_rising() {
        let lineage = Lineage::new(Uuid::nil());
        lineage.committed(lineage.entry(0));
        lineage.accepted(1);
        let later = lineage.entry(1);
        lineage.committed(later);
        // A batch that was under way during the acceptance reports it last.
        lineage.accepted(1);
        assert_eq!(lineage.known.lock().numbers, BTreeMap::from([(1, later.number)]));
        assert!(
            lineage.entry(1).number > later.number,
            "otherwise the next commit would look like an earlier one"
        );
    }
}
