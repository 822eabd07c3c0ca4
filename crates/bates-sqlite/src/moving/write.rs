//! Pages of another store, written as they were there. Pure SQL within a transaction of the writer's: nothing here
//! commits or answers.

use bates_core::{Adopted, Cursor, Gap, Kept, Page, Request, ScopeKey, SeriesName, SetAside, StoreError};
use jiff::Timestamp;
use rusqlite::{Result, Transaction, params};

use crate::aside;
use crate::audit;
use crate::client_lease;
use crate::held;
use crate::pin;
use crate::scope::put_cursor;
use crate::write::{self, Refusable, ScopeRef, integer};

pub(super) fn adopt(transaction: &Transaction<'_>, page: &Page) -> Refusable<(), StoreError> {
    match page {
        Page::Identity(id) => {
            transaction.execute("UPDATE identity SET id = ?", [id.as_bytes()])?;
            Ok(Ok(()))
        }
        Page::Definition(definition, key) => {
            Ok(pin::pin(transaction, definition, key.as_deref())?.and_then(|pinned| {
                let differs = || StoreError::UnknownSeries(definition.series.as_str().into());
                if pinned.permutation_key == *key { Ok(()) } else { Err(differs()) }
            }))
        }
        Page::Descriptions(descriptions) => {
            for (series, description) in descriptions {
                if let Err(error) = write::put_description(transaction, series, Some(description))? {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        }
        Page::Scopes(series, scopes) => each(transaction, scopes, |_| series, scope),
        Page::Aside(series, scopes) => each(transaction, scopes, |_| series, set_aside),
        Page::Pools(series, pools) => each(transaction, pools, |_| series, pool),
        Page::Documents(kept) => each(transaction, kept, |kept| &kept.document.place.series, document),
        Page::Requests(requests) => each(transaction, requests, |request| &request.place.series, request),
        Page::Gaps(gaps) => each(transaction, gaps, |gap| &gap.place.series, gap),
        Page::Records(records) => each(transaction, records, |record| &record.place.series, audit::insert),
        Page::ClientLeases(leases) => {
            for lease in leases {
                if let Err(error) = client_lease::put(transaction, lease, &[])? {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        }
    }
}

/// Writes each of a page, with the id of its series.
fn each<'p, T>(
    transaction: &Transaction<'_>,
    page: &'p [T],
    series: impl Fn(&'p T) -> &'p SeriesName,
    write: impl Fn(&Transaction<'_>, i64, &T) -> Result<()>,
) -> Refusable<(), StoreError> {
    for one in page {
        let Some((series_id, _)) = write::series(transaction, series(one))? else {
            return Ok(Err(StoreError::UnknownSeries(series(one).as_str().into())));
        };
        write(transaction, series_id, one)?;
    }
    Ok(Ok(()))
}

fn scope(transaction: &Transaction<'_>, series_id: i64, adopted: &Adopted) -> Result<()> {
    let Adopted { scope, cursor, ledger, lost, gapless_from } = adopted;
    let scope = scope.as_str();
    let here = write::cursor(transaction, series_id, scope)?;
    let Cursor { next, version } = here.unwrap_or(Cursor { next: 0, version: 0 });
    let cursor = Cursor { next: cursor.next.max(next), version: cursor.version.max(version) };
    put_cursor(transaction, ScopeRef { series_id, scope }, cursor, None, here.is_none())?;
    transaction
        .prepare_cached("UPDATE cursor SET gapless_from = ? WHERE series_id = ? AND scope = ?")?
        .execute(params![integer(*gapless_from), series_id, scope])?;
    let mut enter = transaction.prepare_cached(
        "INSERT OR REPLACE INTO ledger (series_id, scope, first, last) VALUES (?, ?, ?, ?)",
    )?;
    for lease in ledger {
        enter.execute(params![series_id, scope, integer(lease.from()), integer(lease.to() - 1)])?;
    }
    // A move that was begun before may have found what is lost in other ranges.
    transaction
        .prepare_cached("DELETE FROM lost WHERE series_id = ? AND scope = ?")?
        .execute(params![series_id, scope])?;
    for missing in lost {
        held::lose(transaction, ScopeRef { series_id, scope }, missing.range, missing.reason)?;
    }
    Ok(())
}

fn set_aside(
    transaction: &Transaction<'_>,
    series_id: i64,
    SetAside { scope, positions }: &SetAside,
) -> Result<()> {
    aside::enter(transaction, ScopeRef::new(series_id, scope.as_str()), positions)
}

fn pool(transaction: &Transaction<'_>, series_id: i64, (scope, epoch): &(ScopeKey, u64)) -> Result<()> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO pool (series_id, scope, epoch) VALUES (?, ?, ?)")?
        .execute(params![series_id, scope.as_str(), integer(*epoch)])?;
    Ok(())
}

fn document(transaction: &Transaction<'_>, series_id: i64, Kept { document, body }: &Kept) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO document (event, series_id, scope, position, number, state, body, tries, last_error,
                 created_at, updated_at, due_at, in_doubt)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (event) DO UPDATE SET state = excluded.state, body = excluded.body, tries = excluded.tries,
                 last_error = excluded.last_error, updated_at = excluded.updated_at, due_at = excluded.due_at,
                 in_doubt = excluded.in_doubt",
        )?
        .execute(params![
            document.event.as_bytes(),
            series_id,
            document.place.scope.as_str(),
            integer(document.position.value()),
            document.number,
            document.state.name(),
            body,
            document.tries,
            document.last_error,
            document.created.as_millisecond(),
            document.updated.as_millisecond(),
            document.due.map(Timestamp::as_millisecond),
            document.in_doubt
        ])?;
    Ok(())
}

fn request(transaction: &Transaction<'_>, series_id: i64, request: &Request) -> Result<()> {
    let Request { place, idempotency, event, position, number, pruned_as } = request;
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO idempotency
                 (series_id, caller, key, digest, event, scope, position, number, pruned_as)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            series_id,
            idempotency.caller,
            idempotency.key,
            idempotency.digest,
            event.as_bytes(),
            place.scope.as_str(),
            integer(position.value()),
            number,
            pruned_as.name()
        ])?;
    Ok(())
}

fn gap(transaction: &Transaction<'_>, series_id: i64, Gap { place, missing, seen }: &Gap) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO gap (series_id, scope, first, last, reason, seen_at) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            series_id,
            place.scope.as_str(),
            integer(missing.range.from()),
            integer(missing.range.to() - 1),
            missing.reason.name(),
            seen.as_millisecond()
        ])?;
    Ok(())
}
