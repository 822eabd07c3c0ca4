//! What a batch writes: one statement a table, all in one round trip with the commit. Owns what proves that a batch was
//! not committed.

use std::collections::BTreeMap;

use bates_core::ledger::{Decision, IdempotencyKey, IdempotencyKeys, KeyUse};
use bates_core::{Cursor, MissingRange, NewDocument, PositionRange, ScopeId};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::attempt::Decisions;
use super::document;
use super::queue::Group;
use super::sql::{self, By, Table};
use super::{Job, Shared};
use crate::error::{Failed, OpenError, told};
use crate::lineage::Entry;
use crate::session::Session;

pub(super) const GRANTED_BEFORE: &str = "a cursor stands below positions that were granted before: somebody moved it back, or \
    restored a part of the database. Nothing is issued, because numbers would come again. Raise the cursors above all \
    that was issued with `bates floor`, then run `bates floor --accept-timeline`";

#[derive(Default)]
pub(super) struct Writes<'b> {
    moved: Vec<(&'b ScopeId, Cursor)>,
    made: Vec<(&'b str, u64)>,
    issued: Vec<(&'b ScopeId, PositionRange)>,
    leased: Vec<(&'b ScopeId, PositionRange)>,
    pooled: Vec<(&'b ScopeId, PositionRange)>,
    let_go: Vec<(&'b ScopeId, u64)>,
    used: Vec<(&'b ScopeId, u64)>,
    lost: Vec<(&'b ScopeId, MissingRange)>,
    numbered: Vec<NewDocument<'b>>,
    untaken: Vec<&'b IdempotencyKey>,
    retaken: Vec<(&'b IdempotencyKey, KeyUse)>,
}

pub(super) enum Uncommitted {
    Surely(Failed),
    Perhaps(Box<str>),
}

impl<'b> Writes<'b> {
    pub(super) fn of(groups: &'b [Group<Job>], keys: &'b IdempotencyKeys, decisions: &'b Decisions) -> Self {
        let mut made: BTreeMap<&str, u64> = BTreeMap::new();
        let mut writes = Self { untaken: keys.unused(), retaken: keys.reused(), ..Self::default() };
        for (Group { scope_id, jobs }, decision) in groups.iter().zip(decisions) {
            let Some(Decision { outcomes, change }) = decision else { continue };
            writes.let_go.extend(change.released_to.map(|to| (scope_id, to)));
            writes.lost.extend(change.lost.iter().map(|missing| (scope_id, *missing)));
            writes.used.extend(change.used_to.map(|to| (scope_id, to)));
            writes.moved.extend(change.cursor.map(|cursor| (scope_id, cursor)));
            if change.is_new {
                *made.entry(scope_id.series.as_str()).or_default() += 1;
            }
            writes.issued.extend(change.issued.iter().map(|range| (scope_id, *range)));
            writes.leased.extend(change.held.iter().map(|range| (scope_id, *range)));
            writes.pooled.extend(change.pooled.iter().map(|range| (scope_id, *range)));
            let outcomes = jobs.iter().zip(outcomes);
            writes.numbered.extend(outcomes.filter_map(|(job, outcome)| job.request.new_document(outcome)));
        }
        writes.made = made.into_iter().collect();
        writes
    }

    /// The second round trip. If a statement before the commit is refused, the commit is a rollback.
    pub(super) async fn commit(
        &self,
        shared: &Shared,
        session: &Session,
        entry: Entry,
    ) -> Result<(), Uncommitted> {
        let by = By { node: shared.truth.node, batch: entry.batch };
        let (untaken, retaken, let_go, used, lost, moved, made, issued, leased, pooled, numbered, committed) = tokio::join!(
            biased;
            document::remove_keys(session, &self.untaken, entry.batch),
            document::change_keys(session, &self.retaken, entry.batch),
            sql::delete_held_below(session, &self.let_go, shared.truth.node),
            sql::shorten_held(session, &self.used, shared.truth.node),
            sql::write_lost(session, &self.lost),
            sql::move_cursors(session, &self.moved),
            sql::count_scopes(session, &self.made),
            sql::write_ranges(session, Table::Ledger, &self.issued, by),
            sql::write_ranges(session, Table::HeldRange, &self.leased, by),
            // Few batches have any, and all would carry its size.
            Box::pin(sql::write_ranges(session, Table::Pooled, &self.pooled, by)),
            document::write(session, &self.numbered),
            session.batch_execute("COMMIT")
        );
        let keys = untaken.and(retaken);
        let held = let_go.and(used).and(lost);
        let granted = issued.and(leased).and(pooled);
        let before = keys.and(held).and(moved).and(made).and(granted).and(numbered);
        match (before, committed) {
            (Ok(()), Ok(())) => Ok(()),
            // Only the answered commit proves the rollback: PgBouncer reports a lost server like a refused statement.
            (Err(error), Ok(())) => Err(Uncommitted::Surely(refused(error))),
            (_, Err(error)) => {
                let reason = format!("the connection broke during a commit: {}", told(&error));
                Err(Uncommitted::Perhaps(reason.into()))
            }
        }
    }
}

fn refused(error: Error) -> Failed {
    let constraint = error.as_db_error().and_then(|said| said.constraint());
    // Two documents with one id say nothing about positions.
    let is_event = constraint == Some("document_pkey");
    if error.code() == Some(&SqlState::UNIQUE_VIOLATION) && !is_event {
        return Failed::Refused(OpenError::Stopped(GRANTED_BEFORE.into()));
    }
    error.into()
}
