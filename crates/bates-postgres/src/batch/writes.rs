//! The writes of a batch and its commit, in one round trip. Decides whether an error proves that it was rolled back.

use std::collections::BTreeMap;

use bates_core::ledger::{BatchState, Decision, IdempotencyKey, KeyUse};
use bates_core::{Cursor, MissingRange, NewDocument, PositionRange, ScopeId};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::attempt::Decisions;
use super::document;
use super::queue::Group;
use super::sql::{self, BatchOrigin, Table};
use super::{Job, Shared};
use crate::error::{Failure, OpenError, describe};
use crate::lineage::CommitId;
use crate::session::Session;

pub(super) const CURSOR_MOVED_BACK: &str = "a cursor is below positions that were already granted: an operator \
    moved it back, or a part of the database was restored. Nothing is issued, because numbers would repeat. Raise the \
    cursors above all issued numbers with `bates floor`, then run `bates floor --accept-timeline`";

#[derive(Default)]
pub(super) struct Writes<'b> {
    cursors: Vec<(&'b ScopeId, Cursor)>,
    new_scopes: Vec<(&'b str, u64)>,
    issued: Vec<(&'b ScopeId, PositionRange)>,
    held: Vec<(&'b ScopeId, PositionRange)>,
    pooled: Vec<(&'b ScopeId, PositionRange)>,
    released_to: Vec<(&'b ScopeId, u64)>,
    used_to: Vec<(&'b ScopeId, u64)>,
    lost: Vec<(&'b ScopeId, MissingRange)>,
    documents: Vec<NewDocument<'b>>,
    unused_keys: Vec<&'b IdempotencyKey>,
    reused_keys: Vec<(&'b IdempotencyKey, KeyUse)>,
}

pub(super) enum CommitError {
    RolledBack(Failure),
    Unknown(Box<str>),
}

impl<'b> Writes<'b> {
    pub(super) fn of(groups: &'b [Group<Job>], keys: &'b BatchState, decisions: &'b Decisions) -> Self {
        let mut new_scopes: BTreeMap<&str, u64> = BTreeMap::new();
        let mut writes =
            Self { unused_keys: keys.unused(), reused_keys: keys.reassigned(), ..Self::default() };
        for (Group { scope_id, jobs }, decision) in groups.iter().zip(decisions) {
            let Some(Decision { outcomes, change }) = decision else { continue };
            writes.released_to.extend(change.released_to.map(|to| (scope_id, to)));
            writes.lost.extend(change.lost.iter().map(|missing| (scope_id, *missing)));
            writes.used_to.extend(change.used_to.map(|to| (scope_id, to)));
            writes.cursors.extend(change.cursor.map(|cursor| (scope_id, cursor)));
            if change.is_new {
                *new_scopes.entry(scope_id.series.as_str()).or_default() += 1;
            }
            writes.issued.extend(change.issued.iter().map(|range| (scope_id, *range)));
            writes.held.extend(change.held.iter().map(|range| (scope_id, *range)));
            writes.pooled.extend(change.pooled.iter().map(|range| (scope_id, *range)));
            let outcomes = jobs.iter().zip(outcomes);
            writes.documents.extend(outcomes.filter_map(|(job, outcome)| job.request.new_document(outcome)));
        }
        writes.new_scopes = new_scopes.into_iter().collect();
        writes
    }

    /// The second round trip. If a statement before `COMMIT` fails, PostgreSQL rolls back instead.
    pub(super) async fn commit(
        &self,
        shared: &Shared,
        session: &Session,
        commit: CommitId,
    ) -> Result<(), CommitError> {
        let origin = BatchOrigin { node: shared.lineage.node, batch: commit.batch };
        let (unused, reused, released, used, lost, moved, scopes, issued, held, pooled, documents, committed) = tokio::join!(
            biased;
            document::remove_keys(session, &self.unused_keys, commit.batch),
            document::change_keys(session, &self.reused_keys, commit.batch),
            sql::delete_held_below(session, &self.released_to, origin.node),
            sql::shorten_held(session, &self.used_to, origin.node),
            sql::write_lost(session, &self.lost),
            sql::move_cursors(session, &self.cursors),
            sql::count_scopes(session, &self.new_scopes),
            sql::write_ranges(session, Table::Ledger, &self.issued, origin),
            sql::write_ranges(session, Table::HeldRange, &self.held, origin),
            // Boxed, because few batches have pooled ranges and all would carry its size.
            Box::pin(sql::write_ranges(session, Table::Pooled, &self.pooled, origin)),
            document::write(session, &self.documents),
            session.batch_execute("COMMIT")
        );
        let keys = unused.and(reused);
        let released = released.and(used).and(lost);
        let granted = issued.and(held).and(pooled);
        let before = keys.and(released).and(moved).and(scopes).and(granted).and(documents);
        match (before, committed) {
            (Ok(()), Ok(())) => Ok(()),
            // Only an answer to `COMMIT` proves the rollback: PgBouncer reports a lost server like a refused statement.
            (Err(error), Ok(())) => Err(CommitError::RolledBack(refused(error))),
            (_, Err(error)) => {
                let reason = format!("the connection broke during a commit: {}", describe(&error));
                Err(CommitError::Unknown(reason.into()))
            }
        }
    }
}

fn refused(error: Error) -> Failure {
    let constraint = error.as_db_error().and_then(|answer| answer.constraint());
    // Two documents with the same id prove nothing about positions.
    let is_document_id = constraint == Some("document_pkey");
    if error.code() == Some(&SqlState::UNIQUE_VIOLATION) && !is_document_id {
        return Failure::Refused(OpenError::Stopped(CURSOR_MOVED_BACK.into()));
    }
    error.into()
}
