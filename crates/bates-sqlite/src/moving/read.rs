//! Pages of the store as another one adopts them. Each begins where the one before ended, by an index: what was read
//! is not looked at again.

use bates_core::{
    Adopted, Idempotency, Kept, Lease, Missing, Place, Reason, Request, ScopeKey, SeriesName, SetAside, State,
};
use jiff::Timestamp;
use rusqlite::{Connection, Result, Row, params};
use uuid::Uuid;

use crate::held::{self, Held};
use crate::outbox::{event, list, strange};
use crate::read;
use crate::write::{ScopeRef, integer, whole};

pub(super) fn leaving(
    connection: &Connection,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<Adopted>> {
    let scopes = read::scopes(connection, series, after, limit)?.into_iter();
    let adopted = scopes.map(|(scope, cursor)| {
        let place = Place { series: series.clone(), scope };
        let (ledger, lost) = (read::ledger(connection, &place)?, lost(connection, &place, cursor.next)?);
        let gapless_from = gapless_from(connection, &place)?;
        Ok(Adopted { scope: place.scope, cursor, ledger, lost, gapless_from })
    });
    adopted.collect()
}

fn gapless_from(connection: &Connection, place: &Place) -> Result<u64> {
    let mut statement = connection.prepare_cached(
        "SELECT gapless_from FROM cursor WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ?",
    )?;
    statement.query_row([place.series.as_str(), place.scope.as_str()], |row| Ok(whole(row.get(0)?)))
}

/// Lost positions: those known to be lost, and those that a process or a shared pool held, some of which
/// may have been handed out. What was popped was. Positions that clients hold move with their leases.
fn lost(connection: &Connection, place: &Place, next: u64) -> Result<Vec<Missing>> {
    let mut statement = connection.prepare_cached(
        "SELECT first, last, reason FROM lost
         WHERE series_id = (SELECT id FROM series WHERE name = ?1) AND scope = ?2
         UNION ALL
         SELECT first, last, iif(state = 'pushed', 'pool_invalidated', 'crash_skip') FROM pooled
         WHERE series_id = (SELECT id FROM series WHERE name = ?1) AND scope = ?2 AND state IN ('granted', 'pushed')",
    )?;
    let mut rows = statement.query(params![place.series.as_str(), place.scope.as_str()])?;
    let mut lost = Vec::new();
    while let Some(row) = rows.next()? {
        let range = Lease::new(whole(row.get(0)?), whole(row.get(1)?) + 1).ok_or_else(|| strange(1))?;
        let reason = Reason::named(row.get_ref(2)?.as_str()?).ok_or_else(|| strange(2))?;
        lost.push(Missing { range, reason });
    }
    let mut statement = connection.prepare_cached(
        "SELECT series_id, held_from, run FROM cursor
         WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ? AND held_from IS NOT NULL",
    )?;
    let mut rows = statement.query(params![place.series.as_str(), place.scope.as_str()])?;
    while let Some(row) = rows.next()? {
        let held = Held { from: whole(row.get(1)?), run: row.get(2)? };
        let left = held::left(connection, ScopeRef::new(row.get(0)?, place.scope.as_str()), held, next)?;
        lost.extend(left.iter().map(|range| Missing { range, reason: Reason::CrashSkip }));
    }
    Ok(Missing::each_once(&lost))
}

pub(super) fn all_aside(
    connection: &Connection,
    series: &SeriesName,
    after: Option<&(ScopeKey, u64)>,
    limit: usize,
) -> Result<Vec<SetAside>> {
    let mut statement = connection.prepare_cached(
        "SELECT scope, position FROM aside
         WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (scope, position) > (?, ?)
         ORDER BY scope, position LIMIT ?",
    )?;
    // No scope is smaller than the empty one, and no position than 0.
    let (scope, position) = after.map_or(("", -1), |(scope, position)| (scope.as_str(), integer(*position)));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![series.as_str(), scope, position, limit])?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        SetAside::add(&mut page, row.get_ref(0)?.as_str()?, whole(row.get(1)?));
    }
    Ok(page)
}

pub(super) fn kept(
    connection: &Connection,
    after: Option<Uuid>,
    limit: usize,
    bytes: usize,
) -> Result<Vec<Kept>> {
    let columns = list::COLUMNS;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {columns}, body, is_claimed FROM document WHERE event > ? ORDER BY event LIMIT ?"
    ))?;
    // Nothing is smaller than no bytes.
    let after = after.map_or_else(Vec::new, |event| event.as_bytes().to_vec());
    let mut rows = statement.query(params![after, i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let (mut kept, mut read): (Vec<Kept>, usize) = (Vec::new(), 0);
    while read < bytes.max(1)
        && let Some(row) = rows.next()?
    {
        let mut document = list::read(row)?;
        let body = row.get::<_, Option<String>>("body")?;
        if row.get("is_claimed")? {
            document.due = Some(Timestamp::UNIX_EPOCH);
            document.in_doubt = true;
        }
        read += body.as_ref().map_or(0, String::len);
        kept.push(Kept { document, body: body.map(Into::into) });
    }
    Ok(kept)
}

pub(super) fn requests(
    connection: &Connection,
    after: Option<&Request>,
    limit: usize,
) -> Result<Vec<Request>> {
    let mut statement = connection.prepare_cached(
        "SELECT (SELECT name FROM series WHERE id = series_id), scope, caller, key, digest, event, position, number,
             pruned_as
         FROM idempotency
         WHERE (series_id, caller, key) > (coalesce((SELECT id FROM series WHERE name = ?), -1), ?, ?)
         ORDER BY series_id, caller, key LIMIT ?",
    )?;
    let (series, caller, key) = match after {
        Some(Request { place, idempotency: Idempotency { caller, key, .. }, .. }) => {
            (Some(place.series.as_str()), &**caller, &**key)
        }
        None => (None, "", ""),
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = statement.query_map(params![series, caller, key, limit], request)?;
    found.collect()
}

fn request(row: &Row<'_>) -> Result<Request> {
    let text = |column| row.get::<_, String>(column).map(Into::into);
    Ok(Request {
        place: Place {
            series: row.get_ref(0)?.as_str()?.parse().map_err(|_| strange(0))?,
            scope: ScopeKey::from_store(row.get_ref(1)?.as_str()?),
        },
        idempotency: Idempotency { caller: text(2)?, key: text(3)?, digest: row.get(4)? },
        event: event(row.get(5)?),
        position: whole(row.get(6)?),
        number: text(7)?,
        pruned_as: State::named(row.get_ref(8)?.as_str()?).ok_or_else(|| strange(8))?,
    })
}
