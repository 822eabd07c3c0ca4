//! Pages of another store, written as they were there. Pure SQL: nothing here commits or answers.

use bates_core::{
    Cursor, Document, Gap, Idempotency, MissingRange, MovePage, MovedAdoptions, MovedDocument, MovedKey,
    MovedScope, ScopeKey, SeriesName,
};
use jiff::Timestamp;
use rusqlite::{Result, Transaction, params};

use crate::scope::{self, add_scopes, put_cursor};
use crate::write::{self, Refusable, ScopeRef, execute, integer};
use crate::{audit, client_lease, held, pin};

pub(super) fn adopt(transaction: &Transaction<'_>, page: &MovePage) -> Refusable<()> {
    match page {
        MovePage::Identity(id) => {
            execute(transaction, "UPDATE identity SET id = ?", [id.as_bytes()])?;
            Ok(Ok(()))
        }
        MovePage::Definition(definition, key) => Ok(pin::pin(transaction, definition, key.as_deref())?
            .and_then(|pinned| {
                if pinned.permutation_key == *key { Ok(()) } else { Err(write::unknown(&definition.series)) }
            })),
        MovePage::Descriptions(descriptions) => all(descriptions, |(series, description)| {
            write::put_description(transaction, series, Some(description))
        }),
        MovePage::Scopes(series, scopes) => each(transaction, scopes, |_| series, scope),
        MovePage::Adopted(series, scopes) => each(transaction, scopes, |_| series, adopted),
        MovePage::Pools(series, pools) => each(transaction, pools, |_| series, pool),
        MovePage::Documents(kept) => each(transaction, kept, |kept| &kept.document.scope_id.series, document),
        MovePage::Keys(requests) => each(transaction, requests, |request| &request.scope_id.series, request),
        MovePage::Gaps(gaps) => each(transaction, gaps, |gap| &gap.scope_id.series, gap),
        MovePage::Records(records) => audit::record(transaction, records),
        MovePage::ClientLeases(leases) => all(leases, |lease| client_lease::put(transaction, lease, &[])),
    }
}

/// Writes a page until an entry is refused.
fn all<'p, T>(page: &'p [T], write: impl Fn(&'p T) -> Refusable<()>) -> Refusable<()> {
    for one in page {
        if let Err(error) = write(one)? {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// Writes a page, each entry with the id of its series.
fn each<'p, T>(
    transaction: &Transaction<'_>,
    page: &'p [T],
    series: impl Fn(&'p T) -> &'p SeriesName,
    write: impl Fn(&Transaction<'_>, i64, &T) -> Result<()>,
) -> Refusable<()> {
    all(page, |one| {
        let series = series(one);
        let Some(series_id) = write::series(transaction, series)? else {
            return Ok(Err(write::unknown(series)));
        };
        write(transaction, series_id, one).map(Ok)
    })
}

fn scope(transaction: &Transaction<'_>, series_id: i64, adopted: &MovedScope) -> Result<()> {
    let MovedScope { scope, cursor, ledger, lost, gapless_from } = adopted;
    let at @ ScopeRef { scope, .. } = ScopeRef::new(series_id, scope.as_str());
    let here = write::cursor(transaction, series_id, scope)?;
    let Cursor { next, version } = here.unwrap_or(Cursor { next: 0, version: 0 });
    let cursor = Cursor { next: cursor.next.max(next), version: cursor.version.max(version) };
    put_cursor(transaction, at, cursor, None, here.is_none())?;
    if here.is_none() {
        add_scopes(transaction, series_id, 1)?;
    }
    let sql = "UPDATE cursor SET gapless_from = ? WHERE series_id = ? AND scope = ?";
    execute(transaction, sql, params![integer(*gapless_from), series_id, scope])?;
    let enter = "INSERT OR REPLACE INTO ledger (series_id, scope, first, last) VALUES (?, ?, ?, ?)";
    for lease in ledger {
        let (first, last) = (integer(lease.from()), integer(lease.to() - 1));
        execute(transaction, enter, params![series_id, scope, first, last])?;
    }
    // An earlier run of the move may have written the lost positions in other ranges.
    execute(transaction, "DELETE FROM lost WHERE series_id = ? AND scope = ?", params![series_id, scope])?;
    lost.iter().try_for_each(|lost| held::lose(transaction, at, lost.range, lost.reason))
}

fn adopted(
    transaction: &Transaction<'_>,
    series_id: i64,
    MovedAdoptions { scope, positions }: &MovedAdoptions,
) -> Result<()> {
    scope::adopt(transaction, ScopeRef::new(series_id, scope.as_str()), positions)
}

fn pool(transaction: &Transaction<'_>, series_id: i64, (scope, epoch): &(ScopeKey, u64)) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO pool (series_id, scope, epoch) VALUES (?, ?, ?)";
    execute(transaction, sql, params![series_id, scope.as_str(), integer(*epoch)]).map(drop)
}

fn document(
    transaction: &Transaction<'_>,
    series_id: i64,
    MovedDocument { document, body }: &MovedDocument,
) -> Result<()> {
    let sql = "INSERT INTO document (document_id, series_id, scope, position, number, state, body, attempts, last_error,
                   created_at, updated_at, due_at, in_doubt)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (document_id) DO UPDATE
               SET state = excluded.state, body = excluded.body, attempts = excluded.attempts,
                   last_error = excluded.last_error, updated_at = excluded.updated_at, due_at = excluded.due_at,
                   in_doubt = excluded.in_doubt";
    let Document {
        id: document_id, scope_id, position, number, state, attempts, last_error, in_doubt, ..
    } = document;
    let (document_id, scope, position) =
        (document_id.as_bytes(), scope_id.scope.as_str(), integer(position.value()));
    let [created, updated] = [document.created, document.updated].map(Timestamp::as_millisecond);
    let (state, due) = (state.name(), document.due.map(Timestamp::as_millisecond));
    let of = params![
        document_id,
        series_id,
        scope,
        position,
        number,
        state,
        body,
        attempts,
        last_error,
        created,
        updated,
        due,
        in_doubt
    ];
    execute(transaction, sql, of).map(drop)
}

fn request(transaction: &Transaction<'_>, series_id: i64, request: &MovedKey) -> Result<()> {
    let MovedKey { scope_id, idempotency: Idempotency { caller, key, digest }, document_id, number, .. } =
        request;
    let sql = "INSERT OR REPLACE INTO idempotency
                   (series_id, caller, key, digest, document_id, scope, position, number, pruned_as)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let (document_id, scope) = (document_id.as_bytes(), scope_id.scope.as_str());
    let (position, pruned_as) = (integer(request.position.value()), request.pruned_as.name());
    let of = params![series_id, caller, key, digest, document_id, scope, position, number, pruned_as];
    execute(transaction, sql, of).map(drop)
}

fn gap(
    transaction: &Transaction<'_>,
    series_id: i64,
    Gap { scope_id, missing, first_seen: seen }: &Gap,
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO gap (series_id, scope, first, last, reason, seen_at) VALUES (?, ?, ?, ?, ?, ?)";
    let MissingRange { range, reason } = missing;
    let (first, last, seen) = (integer(range.from()), integer(range.to() - 1), seen.as_millisecond());
    let of = params![series_id, scope_id.scope.as_str(), first, last, reason.name(), seen];
    execute(transaction, sql, of).map(drop)
}
