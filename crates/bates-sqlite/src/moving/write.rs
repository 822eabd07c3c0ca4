//! Writes pages of another store unchanged. Pure SQL: nothing here commits or answers.

use bates_core::{
    Cursor, Document, Gap, Idempotency, MissingRange, MovePage, MovedAdoptions, MovedDocument, MovedKey,
    MovedScope, ScopeKey, SeriesName, UsedLeases,
};
use jiff::Timestamp;
use rusqlite::{Result, Transaction, params};

use crate::error::WriteResult;
use crate::gap::put_reconciled;
use crate::scope::{self, add_scopes, put_cursor};
use crate::write::{self, ScopeRef, execute, to_i64};
use crate::{audit, caller, client_lease, held, operation, pin};

pub(super) fn page(transaction: &Transaction<'_>, page: &MovePage) -> WriteResult<()> {
    match page {
        MovePage::Identity(id) => {
            execute(transaction, "UPDATE identity SET id = ?", [id.as_bytes()])?;
            Ok(())
        }
        MovePage::Definition(definition, key) => {
            let pinned = pin::pin(transaction, definition, key.as_deref())?;
            let is_same = pinned.permutation_key == *key;
            if is_same { Ok(()) } else { Err(write::unknown(&definition.series).into()) }
        }
        MovePage::Descriptions(descriptions) => descriptions.iter().try_for_each(|(series, description)| {
            write::put_description(transaction, series, Some(description))
        }),
        MovePage::Scopes(series, scopes) => each(transaction, scopes, |_| series, scope),
        MovePage::Adopted(series, scopes) => each(transaction, scopes, |_| series, adopted),
        MovePage::Pools(series, pools) => each(transaction, pools, |_| series, pool),
        MovePage::Documents(moved) => {
            each(transaction, moved, |moved| &moved.document.scope_id.series, document)
        }
        MovePage::Keys(keys) => each(transaction, keys, |key| &key.scope_id.series, key),
        MovePage::Gaps(gaps) => each(transaction, gaps, |gap| &gap.scope_id.series, gap),
        MovePage::Reconciled(times) => {
            times.iter().try_for_each(|(series, at)| put_reconciled(transaction, series, *at))
        }
        MovePage::Records(records) => audit::record(transaction, records),
        MovePage::Tokens(_)
        | MovePage::Quotas(_)
        | MovePage::Operations(_)
        | MovePage::Chains(_)
        | MovePage::Arrival(_) => Ok(of_callers(transaction, page)?),
        MovePage::ClientLeases(leases) => {
            leases.iter().try_for_each(|lease| client_lease::put(transaction, lease, &UsedLeases::default()))
        }
    }
}

/// Tokens, their quotas, and the log of what callers changed.
fn of_callers(transaction: &Transaction<'_>, page: &MovePage) -> Result<()> {
    match page {
        MovePage::Tokens(tokens) => tokens.iter().try_for_each(|token| caller::insert(transaction, token)),
        MovePage::Quotas(quotas) => quotas.iter().try_for_each(|quota| caller::put_quota(transaction, quota)),
        MovePage::Operations(records) => {
            records.iter().try_for_each(|record| operation::import(transaction, record))
        }
        MovePage::Chains(heads) => heads.iter().try_for_each(|head| operation::put_head(transaction, head)),
        MovePage::Arrival(arrival) => operation::append(transaction, Some(arrival)),
        _ => Ok(()),
    }
}

/// Writes a page, each entry with the id of its series.
fn each<'p, T>(
    transaction: &Transaction<'_>,
    page: &'p [T],
    series: impl Fn(&'p T) -> &'p SeriesName,
    write: impl Fn(&Transaction<'_>, i64, &T) -> Result<()>,
) -> WriteResult<()> {
    for entry in page {
        let series_id = write::series_id(transaction, series(entry))?;
        write(transaction, series_id, entry)?;
    }
    Ok(())
}

fn scope(transaction: &Transaction<'_>, series_id: i64, moved: &MovedScope) -> Result<()> {
    let MovedScope { scope, cursor, ledger, lost, gapless_from } = moved;
    let at @ ScopeRef { scope, .. } = ScopeRef { series_id, scope: scope.as_str() };
    let existing = write::cursor(transaction, series_id, scope)?;
    let Cursor { next, version } = existing.unwrap_or(Cursor { next: 0, version: 0 });
    let cursor = Cursor { next: cursor.next.max(next), version: cursor.version.max(version) };
    put_cursor(transaction, at, cursor, None, existing.is_none())?;
    if existing.is_none() {
        add_scopes(transaction, series_id, 1)?;
    }
    let sql = "UPDATE cursor SET gapless_from = ? WHERE series_id = ? AND scope = ?";
    execute(transaction, sql, params![to_i64(*gapless_from), series_id, scope])?;
    let insert = "INSERT OR REPLACE INTO ledger (series_id, scope, first, last) VALUES (?, ?, ?, ?)";
    for range in ledger {
        let (first, last) = write::bounds(*range);
        execute(transaction, insert, params![series_id, scope, first, last])?;
    }
    // An earlier run of the move may have written the lost positions in other ranges.
    execute(transaction, "DELETE FROM lost WHERE series_id = ? AND scope = ?", params![series_id, scope])?;
    lost.iter().try_for_each(|lost| held::record_lost(transaction, at, lost.range, lost.reason))
}

fn adopted(
    transaction: &Transaction<'_>,
    series_id: i64,
    MovedAdoptions { scope, positions }: &MovedAdoptions,
) -> Result<()> {
    scope::adopt(transaction, ScopeRef { series_id, scope: scope.as_str() }, positions)
}

fn pool(transaction: &Transaction<'_>, series_id: i64, (scope, epoch): &(ScopeKey, u64)) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO pool (series_id, scope, epoch) VALUES (?, ?, ?)";
    execute(transaction, sql, params![series_id, scope.as_str(), to_i64(*epoch)]).map(drop)
}

fn document(
    transaction: &Transaction<'_>,
    series_id: i64,
    MovedDocument { document, body }: &MovedDocument,
) -> Result<()> {
    let sql = "INSERT INTO document (document_id, series_id, scope, position, number, state, body, attempts, last_error,
                   created_at, updated_at, due_at, in_doubt, caller)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (document_id) DO UPDATE
               SET state = excluded.state, body = excluded.body, attempts = excluded.attempts,
                   last_error = excluded.last_error, updated_at = excluded.updated_at, due_at = excluded.due_at,
                   in_doubt = excluded.in_doubt";
    let Document { id, scope_id, position, number, state, attempts, last_error, in_doubt, caller, .. } =
        document;
    let (id, scope, position) = (id.as_bytes(), scope_id.scope.as_str(), to_i64(position.value()));
    let [created, updated] = [document.created, document.updated].map(Timestamp::as_millisecond);
    let (state, due) = (state.name(), document.due.map(Timestamp::as_millisecond));
    let values = params![
        id, series_id, scope, position, number, state, body, attempts, last_error, created, updated, due,
        in_doubt, caller
    ];
    execute(transaction, sql, values).map(drop)
}

fn key(transaction: &Transaction<'_>, series_id: i64, moved: &MovedKey) -> Result<()> {
    let MovedKey { scope_id, idempotency: Idempotency { caller, key, digest }, document_id, number, .. } =
        moved;
    let sql = "INSERT OR REPLACE INTO idempotency
                   (series_id, caller, key, digest, document_id, scope, position, number, pruned_as)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let (document_id, scope) = (document_id.as_bytes(), scope_id.scope.as_str());
    let (position, pruned_as) = (to_i64(moved.position.value()), moved.pruned_as.name());
    let values = params![series_id, caller, key, digest, document_id, scope, position, number, pruned_as];
    execute(transaction, sql, values).map(drop)
}

fn gap(
    transaction: &Transaction<'_>,
    series_id: i64,
    Gap { scope_id, missing: MissingRange { range, reason }, first_seen }: &Gap,
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO gap (series_id, scope, first, last, reason, seen_at) VALUES (?, ?, ?, ?, ?, ?)";
    let ((first, last), seen_at) = (write::bounds(*range), first_seen.as_millisecond());
    let values = params![series_id, scope_id.scope.as_str(), first, last, reason.name(), seen_at];
    execute(transaction, sql, values).map(drop)
}
