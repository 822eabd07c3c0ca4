//! Scopes of another store: cursors, the ledger, what is lost and what was set aside, within the transaction of
//! their page. A cursor
//! that is here already never falls.

use bates_core::{Adopted, Lease, SeriesName, SetAside, StoreError};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::batch::sql::{self, integer};
use crate::error::Failed;
use crate::session::Session;

pub(super) async fn adopt(
    session: &Session,
    node: Uuid,
    series: &SeriesName,
    scopes: &[Adopted],
) -> Result<(), Failed> {
    let sql = "INSERT INTO bates.cursor AS found (series, scope, next, version, gapless_from)
               SELECT $1, * FROM UNNEST($2, $3, $4, $5)
               ON CONFLICT (series, scope) DO UPDATE SET
                   next = greatest(found.next, excluded.next),
                   version = greatest(found.version, excluded.version), gapless_from = excluded.gapless_from
               RETURNING (xmax = 0)";
    let name = series.as_str();
    if sql::lock_series(session, &[name]).await?.is_empty() {
        return Err(StoreError::UnknownSeries(name.into()).into());
    }
    let keys: Vec<&str> = scopes.iter().map(|adopted| adopted.scope.as_str()).collect();
    let nexts: Vec<i64> = scopes.iter().map(|adopted| integer(adopted.cursor.next)).collect();
    let versions: Vec<i64> = scopes.iter().map(|adopted| integer(adopted.cursor.version)).collect();
    let gapless: Vec<i64> = scopes.iter().map(|adopted| integer(adopted.gapless_from)).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
        (&name, Type::TEXT),
        (&keys, Type::TEXT_ARRAY),
        (&nexts, Type::INT8_ARRAY),
        (&versions, Type::INT8_ARRAY),
        (&gapless, Type::INT8_ARRAY),
    ];
    let rows = session.query_typed(sql, &parameters).await?;
    let made = rows.iter().filter(|row| row.get(0)).count() as u64;
    sql::count_scopes(session, &[(name, made)]).await?;
    write_ledger(session, node, name, scopes).await?;
    write_lost(session, name, scopes).await
}

/// Invariant: a cursor knows where those end that were set aside, in the same commit.
pub(super) async fn set_aside(
    session: &Session,
    series: &SeriesName,
    scopes: &[SetAside],
) -> Result<(), Failed> {
    let raise = "UPDATE bates.cursor SET aside_to = greatest(aside_to, ends.past)
                 FROM UNNEST($2, $3) AS ends (scope, past) WHERE series = $1 AND cursor.scope = ends.scope";
    let insert = "INSERT INTO bates.aside (series, scope, position) SELECT $1, * FROM UNNEST($2, $3)
                  ON CONFLICT DO NOTHING";
    let name: &(dyn ToSql + Sync) = &series.as_str();
    let past = |aside: &SetAside| aside.positions.last().map_or(0, |last| integer(last + 1));
    let (keys, ends): (Vec<&str>, Vec<i64>) =
        scopes.iter().map(|aside| (aside.scope.as_str(), past(aside))).unzip();
    let each = scopes.iter().flat_map(|aside| {
        let positions = aside.positions.iter();
        positions.map(|position| (aside.scope.as_str(), integer(*position)))
    });
    let (at, positions): (Vec<&str>, Vec<i64>) = each.unzip();
    let ends: [(&(dyn ToSql + Sync), Type); 3] =
        [(name, Type::TEXT), (&keys, Type::TEXT_ARRAY), (&ends, Type::INT8_ARRAY)];
    session.query_typed(raise, &ends).await?;
    let all: [(&(dyn ToSql + Sync), Type); 3] =
        [(name, Type::TEXT), (&at, Type::TEXT_ARRAY), (&positions, Type::INT8_ARRAY)];
    session.query_typed(insert, &all).await?;
    Ok(())
}

async fn write_ledger(session: &Session, node: Uuid, series: &str, scopes: &[Adopted]) -> Result<(), Failed> {
    let sql = "INSERT INTO bates.ledger (series, scope, first, last, node, batch)
               SELECT $1, issued.*, $5, $6 FROM UNNEST($2, $3, $4) AS issued
               ON CONFLICT (series, scope, first) DO UPDATE SET last = excluded.last";
    let columns = Columns::of(scopes, |adopted| adopted.ledger.iter().copied());
    let batch = Uuid::now_v7();
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&series, Type::TEXT),
        (&columns.scopes, Type::TEXT_ARRAY),
        (&columns.firsts, Type::INT8_ARRAY),
        (&columns.lasts, Type::INT8_ARRAY),
        (&node, Type::UUID),
        (&batch, Type::UUID),
    ];
    session.query_typed(sql, &parameters).await?;
    Ok(())
}

/// A move that was begun before may have found what is lost in other ranges.
async fn write_lost(session: &Session, series: &str, scopes: &[Adopted]) -> Result<(), Failed> {
    let remove = "DELETE FROM bates.lost WHERE series = $1 AND scope = ANY ($2)";
    let sql = "INSERT INTO bates.lost (series, scope, first, last, reason)
               SELECT $1, lost.* FROM UNNEST($2, $3, $4, $5) AS lost
               ON CONFLICT (series, scope, first) DO NOTHING";
    let keys: Vec<&str> = scopes.iter().map(|adopted| adopted.scope.as_str()).collect();
    session.query_typed(remove, &[(&series, Type::TEXT), (&keys, Type::TEXT_ARRAY)]).await?;
    let columns = Columns::of(scopes, |adopted| adopted.lost.iter().map(|missing| missing.range));
    let reasons: Vec<&str> =
        scopes.iter().flat_map(|adopted| &adopted.lost).map(|missing| missing.reason.name()).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
        (&series, Type::TEXT),
        (&columns.scopes, Type::TEXT_ARRAY),
        (&columns.firsts, Type::INT8_ARRAY),
        (&columns.lasts, Type::INT8_ARRAY),
        (&reasons, Type::TEXT_ARRAY),
    ];
    session.query_typed(sql, &parameters).await?;
    Ok(())
}

/// Ranges as arrays.
#[derive(Default)]
struct Columns<'s> {
    scopes: Vec<&'s str>,
    firsts: Vec<i64>,
    lasts: Vec<i64>,
}

impl<'s> Columns<'s> {
    fn of<R: Iterator<Item = Lease>>(scopes: &'s [Adopted], ranges: impl Fn(&'s Adopted) -> R) -> Self {
        let mut columns = Self::default();
        for adopted in scopes {
            for range in ranges(adopted) {
                columns.scopes.push(adopted.scope.as_str());
                columns.firsts.push(integer(range.from()));
                columns.lasts.push(integer(range.to() - 1));
            }
        }
        columns
    }
}
