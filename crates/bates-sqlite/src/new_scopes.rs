//! Scopes that were created lately. The table `cursor` is ordered by scope, so there each new one changes a page of its own.
//! Here the new scopes of a commit are one row, and the log grows by no more than their bytes. They are merged into `cursor`
//! in sorted order, many at a time.
//!
//! Invariant: a scope is in `cursor`, or in memory here and in a row of `new_scopes`. If it is in both tables, its row in
//! `cursor` is the newer one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bates_core::{ScopeId, ScopeKey};
use foldhash::fast::FixedState;
use rusqlite::{Connection, Result, Transaction, params};

use crate::planted::{Bug, is_planted};
use crate::write::{execute, to_i64};

/// Merging begins with this many scopes, of some 150 bytes each, and ends before twice as many are in memory. The more
/// there are, the more of them share a page of `cursor`.
const MERGED_TOGETHER: usize = 131_072;

/// A commit merges at least this many scopes once merging has begun: some milliseconds of work.
const MERGED_MIN: usize = 256;

const INSERT: &str = "INSERT OR IGNORE INTO cursor (series_id, scope, next, version, held_from, run) VALUES (?, ?, ?, ?, ?, ?)";

/// What `cursor` will have of a new scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewScope {
    pub(crate) series_id: i64,
    pub(crate) next: u64,
    pub(crate) version: u64,
    /// Where the positions begin that this run holds.
    pub(crate) held_from: Option<u64>,
}

pub(crate) struct NewScopes {
    run: i64,
    merged_together: usize,
    scopes: HashMap<ScopeId, NewScope, FixedState>,
    /// Those that are being merged, in descending order; some may be merged already.
    merging: Vec<ScopeId>,
    /// All rows up to this one can be deleted once `merging` is empty.
    merging_to: i64,
    /// The id of the last row.
    row: i64,
    is_any: AnyNewScope,
}

/// Whether `cursor` lacks a scope, for threads that read it.
#[derive(Clone, Default)]
pub(crate) struct AnyNewScope(Arc<AtomicBool>);

/// What a commit changes here.
#[derive(Default)]
pub(crate) struct Change {
    added: Vec<(ScopeId, NewScope)>,
    /// Merged alone, because they were needed in `cursor`.
    moved: Vec<ScopeId>,
    /// How many were merged in their order.
    merged: usize,
    /// All that are not in `added` were merged.
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
    pub(crate) fn new(run: i64) -> Self {
        Self {
            run,
            merged_together: MERGED_TOGETHER,
            scopes: HashMap::default(),
            merging: Vec::new(),
            merging_to: 0,
            row: 0,
            is_any: AnyNewScope::default(),
        }
    }

    pub(crate) fn is_any(&self) -> AnyNewScope {
        self.is_any.clone()
    }

    /// Merges all scopes, if `is_all`; otherwise about twice as many as the commit may add, if there are too many.
    pub(crate) fn merge(
        &mut self,
        transaction: &Transaction<'_>,
        calls: usize,
        is_all: bool,
    ) -> Result<Change> {
        let mut change = Change { is_all_merged: is_all && !self.scopes.is_empty(), ..Change::default() };
        if change.is_all_merged {
            let mut all: Vec<_> = self.scopes.iter().collect();
            all.sort_unstable_by_key(|(scope_id, _)| *scope_id);
            all.into_iter().try_for_each(|(scope_id, new)| self.insert(transaction, &scope_id.scope, new))?;
            execute(transaction, "DELETE FROM new_scopes", [])?;
            return Ok(change);
        }
        self.begin_merging();
        let count = MERGED_MIN.max(2 * calls).min(self.merging.len());
        for scope_id in self.merging.iter().rev().take(count) {
            if let Some(new) = self.scopes.get(scope_id) {
                self.insert(transaction, &scope_id.scope, new)?;
            }
        }
        if count > 0 && count == self.merging.len() {
            execute(transaction, "DELETE FROM new_scopes WHERE id <= ?", [self.merging_to])?;
        }
        change.merged = count;
        Ok(change)
    }

    fn begin_merging(&mut self) {
        if self.merging.is_empty() && self.scopes.len() >= self.merged_together {
            self.merging = self.scopes.keys().cloned().collect();
            self.merging.sort_unstable_by(|one, other| other.cmp(one));
            self.merging_to = self.row;
        }
    }

    fn insert(&self, transaction: &Transaction<'_>, scope: &ScopeKey, new: &NewScope) -> Result<()> {
        let NewScope { series_id, next, version, held_from } = *new;
        let run = held_from.map(|_| self.run);
        let values =
            params![series_id, scope.as_str(), to_i64(next), to_i64(version), held_from.map(to_i64), run];
        execute(transaction, INSERT, values).map(drop)
    }

    /// Merges a scope, if it is one of these, because its row is needed.
    pub(crate) fn move_one(
        &self,
        transaction: &Transaction<'_>,
        scope_id: &ScopeId,
        change: &mut Change,
    ) -> Result<()> {
        if let Some(new) = self.scopes.get(scope_id) {
            self.insert(transaction, &scope_id.scope, new)?;
            change.moved.push(scope_id.clone());
        }
        Ok(())
    }

    /// Writes the new scopes of a series as one row.
    pub(crate) fn append(
        &self,
        transaction: &Transaction<'_>,
        added: Vec<(ScopeId, NewScope)>,
        change: &mut Change,
    ) -> Result<()> {
        let Some((_, NewScope { series_id, .. })) = added.first() else { return Ok(()) };
        let sql = "INSERT INTO new_scopes (series_id, run, scopes) VALUES (?, ?, ?)";
        let written = if is_planted(Bug::LoseNewScopes) { "[]".to_owned() } else { to_json(&added) };
        execute(transaction, sql, params![series_id, self.run, written])?;
        change.row = Some(transaction.last_insert_rowid());
        change.added.extend(added);
        Ok(())
    }

    /// After the commit, and before its answers are sent.
    pub(crate) fn committed(&mut self, change: Change) {
        let Change { added, moved, merged, is_all_merged, row } = change;
        if is_all_merged {
            (self.scopes, self.merging) = Default::default();
        }
        for scope_id in self.merging.drain(self.merging.len() - merged..).chain(moved) {
            self.scopes.remove(&scope_id);
        }
        self.scopes.extend(added);
        self.row = row.unwrap_or(self.row);
        self.is_any.0.store(!self.scopes.is_empty(), Ordering::Release);
    }
}

/// An array of `[scope, next, version, held_from]`. A scope has only visible ASCII characters.
fn to_json(added: &[(ScopeId, NewScope)]) -> String {
    let rows: Vec<_> = added
        .iter()
        .map(|(scope_id, new)| (scope_id.scope.as_str(), new.next, new.version, new.held_from))
        .collect();
    serde_json::to_string(&rows).expect("texts and integers have a form in JSON")
}

#[cfg(test)]
mod tests;
