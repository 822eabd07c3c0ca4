//! What is read, without a transaction of its own: each is one statement and sees one moment.

use bates_core::{Cursor, Definition, Lease, Place, Promise, ScopeKey, SeriesName};
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use crate::batch::sql::{integer, whole};
use crate::session::Session;

pub(crate) async fn cursor(session: &Session, place: &Place) -> Result<Option<Cursor>, Error> {
    let sql = "SELECT next, version FROM bates.cursor WHERE series = $1 AND scope = $2";
    let (series, scope) = (place.series.as_str(), place.scope.as_str());
    let rows = session.query_typed(sql, &[(&series, Type::TEXT), (&scope, Type::TEXT)]).await?;
    Ok(rows.first().map(|row| Cursor { next: whole(row, 0), version: whole(row, 1) }))
}

pub(crate) async fn scopes(
    session: &Session,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<(ScopeKey, Cursor)>, Error> {
    let sql = "SELECT next, version, scope FROM bates.cursor
               WHERE series = $1 AND ($2 OR scope > $3) ORDER BY scope LIMIT $4";
    let (series, is_first, after) = (series.as_str(), after.is_none(), after.map_or("", ScopeKey::as_str));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters: [(&(dyn ToSql + Sync), Type); 4] =
        [(&series, Type::TEXT), (&is_first, Type::BOOL), (&after, Type::TEXT), (&limit, Type::INT8)];
    let rows = session.query_typed(sql, &parameters).await?;
    let read = |row: &tokio_postgres::Row| {
        let cursor = Cursor { next: whole(row, 0), version: whole(row, 1) };
        (ScopeKey::from_store(row.get(2)), cursor)
    };
    Ok(rows.iter().map(read).collect())
}

pub(crate) async fn aside(
    session: &Session,
    place: &Place,
    from: u64,
    limit: usize,
) -> Result<Vec<u64>, Error> {
    let sql = "SELECT position FROM bates.aside WHERE series = $1 AND scope = $2 AND position >= $3
               ORDER BY position LIMIT $4";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        (&place.series.as_str(), Type::TEXT),
        (&place.scope.as_str(), Type::TEXT),
        (&integer(from), Type::INT8),
        (&limit, Type::INT8),
    ];
    let rows = session.query_typed(sql, &parameters).await?;
    Ok(rows.iter().map(|row| whole(row, 0)).collect())
}

pub(crate) async fn descriptions(session: &Session) -> Result<Vec<(SeriesName, Box<str>)>, Error> {
    let sql = "SELECT name, description FROM bates.series WHERE description IS NOT NULL ORDER BY name";
    let rows = session.query_typed(sql, &[]).await?;
    let read = |row: &tokio_postgres::Row| {
        let name = row.get::<_, &str>(0).parse().expect("only names were written");
        (name, row.get::<_, &str>(1).into())
    };
    Ok(rows.iter().map(read).collect())
}

pub(crate) async fn ledger(session: &Session, place: &Place) -> Result<Vec<Lease>, Error> {
    let sql = "SELECT first, last FROM bates.ledger WHERE series = $1 AND scope = $2 ORDER BY first";
    let (series, scope) = (place.series.as_str(), place.scope.as_str());
    let rows = session.query_typed(sql, &[(&series, Type::TEXT), (&scope, Type::TEXT)]).await?;
    let mut joined: Vec<Lease> = Vec::new();
    for row in &rows {
        let (from, to) = (whole(row, 0), whole(row, 1) + 1);
        let from = match joined.last() {
            Some(last) if last.to() == from => joined.pop().map_or(from, Lease::from),
            _ => from,
        };
        joined.extend(Lease::new(from, to));
    }
    Ok(joined)
}

/// What a series was pinned with, and its permutation key.
pub(crate) async fn pinned(
    session: &Session,
    series: &SeriesName,
) -> Result<Option<(Definition, Option<Vec<u8>>)>, Error> {
    let sql = "SELECT start, template, parameters, shuffled, reset, time_zone, construction, permutation_key, promise,
                   rules
               FROM bates.series WHERE name = $1";
    let rows = session.query_typed(sql, &[(&series.as_str(), Type::TEXT)]).await?;
    let read = |row: &tokio_postgres::Row| {
        let text = |column: usize| row.get::<_, &str>(column).into();
        let definition = Definition {
            series: series.clone(),
            template: text(1),
            parameters: text(2),
            shuffled: row.get(3),
            start: whole(row, 0),
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

/// What each series promises, where that was pinned.
pub(crate) async fn promises(session: &Session) -> Result<Vec<(SeriesName, Promise)>, Error> {
    let sql = "SELECT name, promise FROM bates.series WHERE promise IS NOT NULL";
    let rows = session.query_typed(sql, &[]).await?;
    let read = |row: &tokio_postgres::Row| {
        Some((row.get::<_, &str>(0).parse().ok()?, row.get::<_, &str>(1).parse().ok()?))
    };
    Ok(rows.iter().filter_map(read).collect())
}
