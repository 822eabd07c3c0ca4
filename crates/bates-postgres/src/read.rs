//! Reads that several modules share: one statement each, which sees one snapshot and needs no transaction.

use bates_core::{Definition, PinnedSeries, Position, ScopeId, SeriesName};
use tokio_postgres::{Error, Row};

use crate::batch::sql::{get_position, get_u64, to_i64};
use crate::outbox::to_limit;
use crate::session::Session;

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

pub(crate) async fn pinned(session: &Session, series: &SeriesName) -> Result<Option<PinnedSeries>, Error> {
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
