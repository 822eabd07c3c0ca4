//! Reads of one statement, which sees one snapshot and needs no transaction.

use bates_core::{
    Cursor, Definition, Position, PositionRange, Promise, RangeSet, ScopeId, ScopeKey, SeriesName,
};
use tokio_postgres::{Error, Row};

use crate::batch::sql::{get_position, get_u64, range, to_i64};
use crate::outbox::to_limit;
use crate::session::Session;

pub(crate) async fn cursor(session: &Session, scope_id: &ScopeId) -> Result<Option<Cursor>, Error> {
    let sql = "SELECT next, version FROM bates.cursor WHERE series = $1 AND scope = $2";
    let rows = session.query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
    Ok(rows.first().map(read_cursor))
}

pub(crate) async fn scopes(
    session: &Session,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<(ScopeKey, Cursor)>, Error> {
    let sql = "SELECT next, version, scope FROM bates.cursor
               WHERE series = $1 AND ($2 OR scope > $3) ORDER BY scope LIMIT $4";
    let (is_first, after) = (after.is_none(), after.map_or("", ScopeKey::as_str));
    let rows = session.query(sql, &[&series.as_str(), &is_first, &after, &to_limit(limit)]).await?;
    Ok(rows.iter().map(|row| (ScopeKey::from_store(row.get(2)), read_cursor(row))).collect())
}

fn read_cursor(row: &Row) -> Cursor {
    Cursor { next: get_u64(row, 0), version: get_u64(row, 1) }
}

pub(crate) async fn adopted(
    session: &Session,
    scope_id: &ScopeId,
    from: u64,
    limit: usize,
) -> Result<Vec<Position>, Error> {
    let sql = "SELECT position FROM bates.adopted WHERE series = $1 AND scope = $2 AND position >= $3
               ORDER BY position LIMIT $4";
    let (series, scope) = (scope_id.series.as_str(), scope_id.scope.as_str());
    let rows = session.query(sql, &[&series, &scope, &to_i64(from), &to_limit(limit)]).await?;
    Ok(rows.iter().map(|row| get_position(row, 0)).collect())
}

pub(crate) async fn descriptions(session: &Session) -> Result<Vec<(SeriesName, Box<str>)>, Error> {
    let sql = "SELECT name, description FROM bates.series WHERE description IS NOT NULL ORDER BY name";
    let rows = session.query(sql, &[]).await?;
    let read = |row: &Row| {
        let name = row.get::<_, &str>(0).parse().expect("Bates writes only valid series names");
        (name, row.get::<_, &str>(1).into())
    };
    Ok(rows.iter().map(read).collect())
}

pub(crate) async fn ledger(session: &Session, scope_id: &ScopeId) -> Result<Vec<PositionRange>, Error> {
    let sql = "SELECT first, last FROM bates.ledger WHERE series = $1 AND scope = $2";
    let rows = session.query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
    Ok(RangeSet::of(rows.iter().filter_map(|row| range(row, 0))).iter().collect())
}

pub(crate) async fn pinned(
    session: &Session,
    series: &SeriesName,
) -> Result<Option<(Definition, Option<Vec<u8>>)>, Error> {
    let sql = "SELECT start, template, parameters, shuffled, reset, time_zone, construction, permutation_key, promise,
                   rules
               FROM bates.series WHERE name = $1";
    let rows = session.query(sql, &[&series.as_str()]).await?;
    let read = |row: &Row| {
        let text = |column: usize| row.get::<_, &str>(column).into();
        let definition = Definition {
            series: series.clone(),
            template: text(1),
            parameters: text(2),
            shuffled: row.get(3),
            start: get_u64(row, 0),
            reset: text(4),
            time_zone: text(5),
            construction: u16::try_from(row.get::<_, i32>(6)).unwrap_or(u16::MAX),
            promise: row.get::<_, Option<&str>>(8).and_then(|promise| promise.parse().ok()),
            rules: row.get::<_, Option<&str>>(9).map(Into::into),
        };
        (definition, row.get(7))
    };
    Ok(rows.first().map(read))
}

pub(crate) async fn promises(session: &Session) -> Result<Vec<(SeriesName, Promise)>, Error> {
    let sql = "SELECT name, promise FROM bates.series WHERE promise IS NOT NULL";
    let rows = session.query(sql, &[]).await?;
    let read = |row: &Row| Some((row.get::<_, &str>(0).parse().ok()?, row.get::<_, &str>(1).parse().ok()?));
    Ok(rows.iter().filter_map(read).collect())
}
