//! Scopes that were created lately. The table `cursor` is ordered by scope, so there each new one changes a page of its own.
//! Here the new scopes of a commit are one row, and the log grows by no more than their bytes. They are merged into `cursor`
//! in sorted order, many at a time.
//!
//! Invariant: a scope is in `cursor`, or in memory here and in a row of `new_scopes`. If it is in both, its row in `cursor`
//! is the newer one.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bates_core::ScopeKey;
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use rusqlite::{Connection, Result, Transaction, params};

use crate::known_scopes::KnownScopes;
use crate::planted::{Bug, is_planted};
use crate::write::{execute, to_i64};

/// While the writer is idle, merging begins with this many scopes, of some 150 bytes each. The more there are, the more of
/// them share a page of `cursor`. With twice as many, it begins beside other work, and ends before there are three times
/// as many.
const MERGED_TOGETHER: usize = 131_072;

/// An idle writer merges this many scopes in a commit: a caller that comes then waits some milliseconds.
const MERGED_IDLE: usize = 1_024;

/// A busy one merges at least this many.
const MERGED_MIN: usize = 256;

const INSERT: &str = "INSERT OR IGNORE INTO cursor (series_id, scope, next, version, held_from, run) VALUES (?, ?, ?, ?, ?, ?)";

/// What `cursor` will have of a new scope.
#[derive(Clone, Debug)]
pub(crate) struct NewScope {
    pub(crate) series_id: i64,
    pub(crate) scope: ScopeKey,
    pub(crate) next: u64,
    pub(crate) version: u64,
    /// Where the positions begin that this run holds.
    pub(crate) held_from: Option<u64>,
}

pub(crate) struct NewScopes {
    run: i64,
    merged_together: usize,
    hasher: RandomState,
    scopes: HashTable<Appended>,
    /// Those that are still to be merged, in descending order.
    merging: Vec<NewScope>,
    /// All rows up to this one are merged once `merging` is empty.
    merging_to: i64,
    /// The id of the last row.
    row: i64,
    is_any: AnyNewScope,
    known: KnownScopes,
}

/// How many scopes a commit merges.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Merge {
    /// No other work: the writer is idle.
    Idle,
    /// This many calls, and each may add a scope.
    Calls(usize),
    /// Work for which every scope must be in `cursor`.
    NeedsCursors,
}

struct Appended {
    new: NewScope,
    /// The id of its row.
    row: i64,
}

/// Whether `cursor` lacks a scope, for threads that read it.
#[derive(Clone, Default)]
pub(crate) struct AnyNewScope(Arc<AtomicBool>);

/// What a commit changes here.
#[derive(Default)]
pub(crate) struct Change {
    added: Vec<Appended>,
    /// Merged alone, because they were needed in `cursor`.
    moved: Vec<(i64, ScopeKey)>,
    /// How many were merged in their order.
    merged: usize,
    /// The table was emptied.
    is_all_merged: bool,
    row: Option<i64>,
}

impl AnyNewScope {
    pub(crate) fn load(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Merges the scopes that an earlier run left.
pub(crate) fn merge_left(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "INSERT OR IGNORE INTO cursor (series_id, scope, next, version, held_from, run)
             SELECT series_id, value ->> 0, value ->> 1, value ->> 2, value ->> 3, run
             FROM new_scopes, json_each(scopes) ORDER BY 1, 2;
         DELETE FROM new_scopes;",
    )
}

impl NewScopes {
    /// After the scopes that an earlier run left are merged.
    pub(crate) fn new(connection: &Connection, run: i64) -> Result<Self> {
        Ok(Self {
            run,
            merged_together: MERGED_TOGETHER,
            hasher: RandomState::default(),
            scopes: HashTable::new(),
            merging: Vec::new(),
            merging_to: 0,
            row: 0,
            is_any: AnyNewScope::default(),
            known: KnownScopes::new(connection)?,
        })
    }

    pub(crate) fn is_any(&self) -> AnyNewScope {
        self.is_any.clone()
    }

    /// Whether an idle writer should merge scopes.
    pub(crate) fn has_many(&self) -> bool {
        !self.merging.is_empty() || self.scopes.len() >= self.merged_together
    }

    /// Whether [`Self::read_known`] has something to do.
    pub(crate) fn is_reading_known(&self) -> bool {
        self.known.is_reading()
    }

    /// Before a transaction adds scopes that are not looked for here. The scopes that are not in `cursor` stay known: if the
    /// transaction fails, no table that is read lists them.
    pub(crate) fn forget_known(&mut self) {
        self.known = KnownScopes::unread();
        for Appended { new, .. } in &self.scopes {
            self.known.meet(hash(&self.hasher, new.series_id, new.scope.as_str()));
        }
    }

    /// Reads which scopes earlier runs created; the more often it is called, the sooner it ends.
    pub(crate) fn read_known(&mut self, connection: &Connection) -> Result<()> {
        let Self { known, hasher, .. } = self;
        known.read_some(connection, |series_id, scope| hash(hasher, series_id, scope))
    }

    pub(crate) fn merge(&mut self, transaction: &Transaction<'_>, merge: Merge) -> Result<Change> {
        if merge == Merge::NeedsCursors && !self.scopes.is_empty() {
            self.insert(transaction, sorted(self.scopes.iter()).iter().rev())?;
            execute(transaction, "DELETE FROM new_scopes", [])?;
            return Ok(Change { is_all_merged: true, ..Change::default() });
        }
        let (begins_at, merged) = match merge {
            Merge::Idle => (self.merged_together, MERGED_IDLE),
            Merge::Calls(calls) => (2 * self.merged_together, MERGED_MIN.max(2 * calls)),
            Merge::NeedsCursors => return Ok(Change::default()),
        };
        if self.merging.is_empty() && self.scopes.len() >= begins_at {
            (self.merging, self.merging_to) = (sorted(self.scopes.iter()), self.row);
        }
        if self.scopes.len() < begins_at && merge != Merge::Idle {
            return Ok(Change::default());
        }
        let merged = merged.min(self.merging.len());
        self.insert(transaction, self.merging.iter().rev().take(merged))?;
        if merged > 0 && merged == self.merging.len() {
            execute(transaction, "DELETE FROM new_scopes WHERE id <= ?", [self.merging_to])?;
        }
        Ok(Change { merged, ..Change::default() })
    }

    fn insert<'s>(
        &self,
        transaction: &Transaction<'_>,
        new: impl IntoIterator<Item = &'s NewScope>,
    ) -> Result<()> {
        let mut insert = transaction.prepare_cached(INSERT)?;
        for NewScope { series_id, scope, next, version, held_from } in new {
            let run = held_from.map(|_| self.run);
            let (next, version, held_from) = (to_i64(*next), to_i64(*version), held_from.map(to_i64));
            insert.execute(params![series_id, scope.as_str(), next, version, held_from, run])?;
        }
        Ok(())
    }

    /// Whether a scope may be in a table. If its row is in `new_scopes`, it is merged first, because it is needed.
    pub(crate) fn find(
        &mut self,
        transaction: &Transaction<'_>,
        series_id: i64,
        scope: &ScopeKey,
        change: &mut Change,
    ) -> Result<bool> {
        let hash = self.hash(series_id, scope);
        if !self.known.meet(hash) {
            return Ok(false);
        }
        if let Some(Appended { new, .. }) = self.scopes.find(hash, |appended| appended.is(series_id, scope)) {
            self.insert(transaction, [new])?;
            change.moved.push((series_id, scope.clone()));
        }
        Ok(true)
    }

    /// Writes the new scopes of a series as one row.
    pub(crate) fn append(
        &self,
        transaction: &Transaction<'_>,
        added: Vec<NewScope>,
        change: &mut Change,
    ) -> Result<()> {
        let Some(NewScope { series_id, .. }) = added.first() else { return Ok(()) };
        let sql = "INSERT INTO new_scopes (series_id, run, scopes) VALUES (?, ?, ?)";
        let written = if is_planted(Bug::LoseNewScopes) { "[]".to_owned() } else { to_json(&added) };
        execute(transaction, sql, params![series_id, self.run, written])?;
        let row = transaction.last_insert_rowid();
        change.row = Some(row);
        change.added.extend(added.into_iter().map(|new| Appended { new, row }));
        Ok(())
    }

    /// After the commit, and before its answers are sent.
    pub(crate) fn committed(&mut self, change: Change) {
        let Change { added, moved, merged, is_all_merged, row } = change;
        if is_all_merged {
            self.scopes.clear();
            self.merging.clear();
        }
        self.merging.truncate(self.merging.len() - merged);
        if merged > 0 && self.merging.is_empty() {
            self.scopes.retain(|appended| appended.row > self.merging_to);
        }
        for (series_id, scope) in moved {
            let hash = self.hash(series_id, &scope);
            if let Ok(moved) = self.scopes.find_entry(hash, |appended| appended.is(series_id, &scope)) {
                moved.remove();
            }
        }
        let Self { hasher, scopes, .. } = self;
        let hash = |Appended { new, .. }: &Appended| hash(hasher, new.series_id, new.scope.as_str());
        scopes.reserve(added.len(), hash);
        for appended in added {
            scopes.insert_unique(hash(&appended), appended, hash);
        }
        self.row = row.unwrap_or(self.row);
        self.is_any.0.store(!self.scopes.is_empty(), Ordering::Release);
    }

    fn hash(&self, series_id: i64, scope: &ScopeKey) -> u64 {
        hash(&self.hasher, series_id, scope.as_str())
    }
}

fn hash(hasher: &RandomState, series_id: i64, scope: &str) -> u64 {
    hasher.hash_one((series_id, scope))
}

impl Appended {
    fn is(&self, series_id: i64, scope: &ScopeKey) -> bool {
        self.new.series_id == series_id && self.new.scope == *scope
    }
}

/// In descending order of the table.
fn sorted<'s>(scopes: impl Iterator<Item = &'s Appended>) -> Vec<NewScope> {
    let mut scopes: Vec<_> = scopes.map(|appended| appended.new.clone()).collect();
    scopes.sort_unstable_by(|one, other| (other.series_id, &other.scope).cmp(&(one.series_id, &one.scope)));
    scopes
}

/// An array of `[scope, next, version, held_from]`. A scope has only visible ASCII characters.
fn to_json(added: &[NewScope]) -> String {
    let rows: Vec<_> =
        added.iter().map(|new| (new.scope.as_str(), new.next, new.version, new.held_from)).collect();
    serde_json::to_string(&rows).expect("texts and integers have a form in JSON")
}

#[cfg(test)]
mod tests;
