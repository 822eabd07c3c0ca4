//! Pages of the store as another one adopts them. Each begins where the one before ended, by an index: what was read
//! is not looked at again.

use bates_core::{Idempotency, Kept, Place, Position, Request, ScopeKey, SeriesName, SetAside, State};
use rusqlite::{Connection, Result, Row, params};
use uuid::Uuid;

use crate::outbox::{bounded, deliver, event, list, strange};
use crate::write::{integer, position};

pub(super) fn all_aside(
    connection: &Connection,
    series: &SeriesName,
    after: Option<&(ScopeKey, Position)>,
    limit: usize,
) -> Result<Vec<SetAside>> {
    let mut statement = connection.prepare_cached(
        "SELECT scope, position FROM aside
         WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (scope, position) > (?, ?)
         ORDER BY scope, position LIMIT ?",
    )?;
    // No scope is smaller than the empty one, and no position than 0.
    let (scope, behind) =
        after.map_or(("", -1), |(scope, position)| (scope.as_str(), integer(position.value())));
    let mut rows = statement.query(params![series.as_str(), scope, behind, bounded(limit)])?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        SetAside::add(&mut page, row.get_ref(0)?.as_str()?, position(row.get(1)?));
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
    statement.query_map(params![series, caller, key, bounded(limit)], request)?.collect()
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
        position: position(row.get(6)?),
        number: text(7)?,
        pruned_as: State::named(row.get_ref(8)?.as_str()?).ok_or_else(|| strange(8))?,
    })
}
