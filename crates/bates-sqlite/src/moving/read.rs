//! Pages of the store as another one adopts them. An index finds where the page before ended, so no row is read twice.

use bates_core::{Idempotency, Kept, Position, Request, ScopeKey, SeriesName, SetAside, State};
use rusqlite::{Connection, Result, Row, params};
use uuid::Uuid;

use crate::outbox::{deliver, list};
use crate::write::{bounded, integer, place, position, rows, strange};

pub(super) fn all_aside(
    connection: &Connection,
    series: &SeriesName,
    after: Option<&(ScopeKey, Position)>,
    limit: usize,
) -> Result<Vec<SetAside>> {
    let sql = "SELECT scope, position FROM aside
               WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (scope, position) > (?, ?)
               ORDER BY scope, position LIMIT ?";
    // No scope is smaller than the empty one, and no position than 0.
    let (scope, behind) =
        after.map_or(("", -1), |(scope, position)| (scope.as_str(), integer(position.value())));
    let mut page = Vec::new();
    rows(connection, sql, params![series.as_str(), scope, behind, bounded(limit)], |row| {
        SetAside::add(&mut page, row.get_ref(0)?.as_str()?, position(row.get(1)?));
        Ok(())
    })?;
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
    // No id is smaller than the empty one.
    let after = after.map_or_else(Vec::new, |event| event.as_bytes().to_vec());
    let rows = statement.query_map(params![after, bounded(limit)], |row| {
        let body = row.get::<_, Option<String>>("body")?.map(Into::into);
        Ok(Kept::leaving(list::read(row)?, body, row.get("is_claimed")?))
    })?;
    deliver::fitting(rows, bytes, |kept| kept.body.as_ref().map_or(0, |body| body.len()))
}

pub(super) fn requests(
    connection: &Connection,
    after: Option<&Request>,
    limit: usize,
) -> Result<Vec<Request>> {
    let sql =
        "SELECT (SELECT name FROM series WHERE id = series_id), scope, caller, key, digest, event, position,
                   number, pruned_as
               FROM idempotency
               WHERE (series_id, caller, key) > (coalesce((SELECT id FROM series WHERE name = ?), -1), ?, ?)
               ORDER BY series_id, caller, key LIMIT ?";
    let (series, caller, key) = match after {
        Some(Request { place, idempotency: Idempotency { caller, key, .. }, .. }) => {
            (Some(place.series.as_str()), &**caller, &**key)
        }
        None => (None, "", ""),
    };
    rows(connection, sql, params![series, caller, key, bounded(limit)], request)
}

fn request(row: &Row<'_>) -> Result<Request> {
    let text = |column| row.get::<_, String>(column).map(Into::into);
    Ok(Request {
        place: place(row, 0)?,
        idempotency: Idempotency { caller: text(2)?, key: text(3)?, digest: row.get(4)? },
        event: Uuid::from_bytes(row.get(5)?),
        position: position(row.get(6)?),
        number: text(7)?,
        pruned_as: State::named(row.get_ref(8)?.as_str()?).ok_or_else(|| strange(8))?,
    })
}
