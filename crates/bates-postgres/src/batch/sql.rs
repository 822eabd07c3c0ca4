//! The statements of a batch. Each takes arrays and serves all scopes. Nothing here begins, commits or decides.

use bates_core::ledger::SeriesBefore;
use bates_core::{Cursor, MissingRange, Position, PositionRange, Promise, ScopeId, ScopeKey};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::node::CRASHED_AFTER_SECONDS;
use crate::parameter::Parameter;
use crate::session::Session;

#[derive(Clone, Copy)]
pub(crate) struct LockedSeries {
    pub(crate) before: SeriesBefore,
    pub(crate) promise: Option<Promise>,
}

/// The index of the scope of a row in the parameters. SQL ordinality counts from 1.
fn index(row: &Row) -> usize {
    usize::try_from(get_u64(row, 0) - 1).expect("an array index fits usize")
}

fn promise(row: &Row, column: usize) -> Option<Promise> {
    row.get::<_, Option<&str>>(column)?.parse().ok()
}

/// Locks the series in the order of their names, against other nodes that create scopes in them.
pub(crate) async fn lock_series(
    session: &Session,
    names: &[&str],
) -> Result<Vec<(String, LockedSeries)>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT name, scopes, promise, start, floor FROM bates.series WHERE name = ANY ($1)
               ORDER BY name FOR NO KEY UPDATE";
    let rows = session.query(sql, &[&names]).await?;
    let read = |row: &Row| {
        let before = SeriesBefore { scopes: get_u64(row, 1), start: get_u64(row, 3), floor: get_u64(row, 4) };
        (row.get(0), LockedSeries { before, promise: promise(row, 2) })
    };
    Ok(rows.iter().map(read).collect())
}

pub(crate) struct LockedCursor {
    pub(crate) index: usize,
    pub(crate) cursor: Cursor,
    /// The end of the adopted positions.
    pub(crate) adopted_to: u64,
    pub(crate) promise: Option<Promise>,
}

/// Locks the cursors in the order of their scope ids.
pub(crate) async fn lock_cursors(
    session: &Session,
    scope_ids: &[&ScopeId],
) -> Result<Vec<LockedCursor>, Error> {
    // A change of the promise waits for this batch, so the promise cannot change before its commit.
    let sql = "SELECT requested.at, cursor.next, cursor.version, cursor.adopted_to,
                   (SELECT promise FROM bates.series WHERE name = requested.series)
               FROM UNNEST($1, $2) WITH ORDINALITY AS requested (series, scope, at)
               JOIN bates.cursor ON cursor.series = requested.series AND cursor.scope = requested.scope
               ORDER BY cursor.series, cursor.scope FOR UPDATE OF cursor";
    let (series, scopes) = columns(scope_ids.iter().copied());
    let rows = session.query(sql, &[&series, &scopes]).await?;
    let read = |row: &Row| {
        let cursor = Cursor { next: get_u64(row, 1), version: get_u64(row, 2) };
        LockedCursor { index: index(row), cursor, adopted_to: get_u64(row, 3), promise: promise(row, 4) }
    };
    Ok(rows.iter().map(read).collect())
}

/// Moves cursors, locked or new. A cursor that moves back lowers `gapless_from`: positions above it were never handed out.
pub(crate) async fn move_cursors(session: &Session, moved: &[(&ScopeId, Cursor)]) -> Result<(), Error> {
    let sql = "INSERT INTO bates.cursor (series, scope, next, version) SELECT * FROM UNNEST($1, $2, $3, $4)
               ON CONFLICT (series, scope) DO UPDATE SET next = excluded.next, version = excluded.version,
                   gapless_from = least(cursor.gapless_from, excluded.next)";
    let (series, scopes) = columns(moved.iter().map(|(scope_id, _)| *scope_id));
    let (next, version): (Vec<i64>, Vec<i64>) =
        moved.iter().map(|(_, cursor)| (to_i64(cursor.next), to_i64(cursor.version))).unzip();
    session.query(sql, &[&series, &scopes, &next, &version]).await.map(drop)
}

/// Counts new scopes in their series, which are locked.
pub(crate) async fn count_scopes(session: &Session, added: &[(&str, u64)]) -> Result<(), Error> {
    if added.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE bates.series SET scopes = scopes + added.count
               FROM UNNEST($1, $2) AS added (name, count) WHERE series.name = added.name";
    let (names, counts): (Vec<&str>, Vec<i64>) =
        added.iter().map(|(name, count)| (*name, to_i64(*count))).unzip();
    session.query(sql, &[&names, &counts]).await.map(drop)
}

#[derive(Clone, Copy)]
pub(crate) enum Table {
    HeldRange,
    Pooled,
    Ledger,
    Burned,
}

impl Table {
    fn insert(self) -> String {
        let (table, end) = match self {
            // A recall waits for this batch, so the epoch cannot change before its commit.
            Self::HeldRange => {
                return "INSERT INTO bates.held_range (series, scope, first, last, node, batch, epoch)
                        SELECT r.*, $5, $6, (SELECT epoch FROM bates.series WHERE name = r.series)
                        FROM UNNEST($1, $2, $3, $4) AS r (series, scope, first, last)"
                    .to_owned();
            }
            Self::Pooled => ("pooled", ""),
            Self::Ledger => ("ledger", ""),
            Self::Burned => ("burned", "ON CONFLICT DO NOTHING"),
        };
        format!(
            "INSERT INTO bates.{table} (series, scope, first, last, node, batch)
             SELECT r.*, $5, $6 FROM UNNEST($1, $2, $3, $4) AS r {end}"
        )
    }
}

/// The node and the batch that granted a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchOrigin {
    pub(crate) node: Uuid,
    pub(crate) batch: Uuid,
}

/// A safety net, not the guarantee: the first position is part of the primary key, so a range that is granted again from
/// the same position fails while the earlier row exists. Overlaps that begin elsewhere are not detected.
pub(crate) async fn write_ranges(
    session: &Session,
    table: Table,
    ranges: &[(&ScopeId, PositionRange)],
    origin: BatchOrigin,
) -> Result<(), Error> {
    if ranges.is_empty() {
        return Ok(());
    }
    let (series, scopes) = columns(ranges.iter().map(|(scope_id, _)| *scope_id));
    let (first, last) = bounds(ranges.iter().map(|(_, range)| *range));
    let parameters: [&dyn Parameter; 6] = [&series, &scopes, &first, &last, &origin.node, &origin.batch];
    session.query(&table.insert(), &parameters).await.map(drop)
}

/// Deletes the held ranges of a node in these scopes that begin below a position.
pub(crate) async fn delete_held_below(
    session: &Session,
    released: &[(&ScopeId, u64)],
    node: Uuid,
) -> Result<(), Error> {
    if released.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM bates.held_range AS held USING UNNEST($1, $2, $4) AS r (series, scope, upper)
               WHERE held.series = r.series AND held.scope = r.scope AND held.node = $3 AND held.first < r.upper";
    let (series, scopes) = columns(released.iter().map(|(scope_id, _)| *scope_id));
    let upper = column(released, |(_, to)| to_i64(*to));
    session.query(sql, &[&series, &scopes, &node, &upper]).await.map(drop)
}

/// Deletes the held and pooled ranges of a batch that no caller got.
pub(crate) async fn remove_batch(
    session: &Session,
    scope_ids: &[&ScopeId],
    batch: Uuid,
) -> Result<(), Error> {
    let (series, scopes) = columns(scope_ids.iter().copied());
    for table in ["held_range", "pooled"] {
        let sql = format!(
            "DELETE FROM bates.{table} AS granted USING UNNEST($1, $2) AS r (series, scope)
             WHERE granted.series = r.series AND granted.scope = r.scope AND granted.batch = $3"
        );
        session.query(&sql, &[&series, &scopes, &batch]).await?;
    }
    Ok(())
}

/// Shortens the held ranges of a node to the positions from `used_to` on, which it has not handed out.
pub(crate) async fn shorten_held(
    session: &Session,
    used_to: &[(&ScopeId, u64)],
    node: Uuid,
) -> Result<(), Error> {
    if used_to.is_empty() {
        return Ok(());
    }
    let remove = "DELETE FROM bates.held_range AS held USING UNNEST($1, $2, $3) AS r (series, scope, used_to)
                  WHERE held.series = r.series AND held.scope = r.scope AND held.node = $4
                  AND held.last < r.used_to";
    let shorten = "UPDATE bates.held_range AS held SET first = r.used_to
                   FROM UNNEST($1, $2, $3) AS r (series, scope, used_to)
                   WHERE held.series = r.series AND held.scope = r.scope AND held.node = $4
                   AND held.first < r.used_to AND held.last >= r.used_to";
    let (series, scopes) = columns(used_to.iter().map(|(scope_id, _)| *scope_id));
    let ends = column(used_to, |(_, to)| to_i64(*to));
    let parameters: [&dyn Parameter; 4] = [&series, &scopes, &ends, &node];
    let (removed, shortened) = (session.query(remove, &parameters), session.query(shorten, &parameters));
    let (removed, shortened) = tokio::join!(biased; removed, shortened);
    removed.and(shortened).map(drop)
}

pub(crate) struct ScopeHolders {
    pub(crate) index: usize,
    /// Whether this node has rows for held positions that it has already handed out.
    pub(crate) has_spent_rows: bool,
    pub(crate) is_held_elsewhere: bool,
}

/// The scopes in which any node holds ranges. Each scope comes with the position below which this node has handed out all.
pub(crate) async fn holders(
    session: &Session,
    scopes: &[(&ScopeId, u64)],
    node: Uuid,
) -> Result<Vec<ScopeHolders>, Error> {
    let sql = "SELECT r.at, bool_or(held.node = $4 AND held.first < r.spent_to),
                   bool_or(held.node <> $4 AND nodes.seen_at > now() - $5 * interval '1 second')
               FROM UNNEST($1, $2, $3) WITH ORDINALITY AS r (series, scope, spent_to, at)
               JOIN bates.held_range AS held ON held.series = r.series AND held.scope = r.scope
               LEFT JOIN bates.nodes ON nodes.id = held.node
               GROUP BY r.at";
    let (series, keys) = columns(scopes.iter().map(|(scope_id, _)| *scope_id));
    let spent_to = column(scopes, |(_, to)| to_i64(*to));
    let rows = session.query(sql, &[&series, &keys, &spent_to, &node, &CRASHED_AFTER_SECONDS]).await?;
    let read = |row: &Row| ScopeHolders {
        index: index(row),
        has_spent_rows: row.get(1),
        is_held_elsewhere: row.get::<_, Option<bool>>(2).unwrap_or(false),
    };
    Ok(rows.iter().map(read).collect())
}

pub(crate) async fn write_lost(session: &Session, lost: &[(&ScopeId, MissingRange)]) -> Result<(), Error> {
    if lost.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO bates.lost (series, scope, first, last, reason)
               SELECT * FROM UNNEST($1, $2, $3, $4, $5)
               ON CONFLICT (series, scope, first) DO UPDATE SET last = greatest(lost.last, excluded.last)";
    let (series, scopes) = columns(lost.iter().map(|(scope_id, _)| *scope_id));
    let (first, last) = bounds(lost.iter().map(|(_, missing)| missing.range));
    let reasons = column(lost, |(_, missing)| missing.reason.name());
    session.query(sql, &[&series, &scopes, &first, &last, &reasons]).await.map(drop)
}

/// One value of each entry, as an array parameter.
pub(crate) fn column<'p, T, V>(page: &'p [T], value: impl Fn(&'p T) -> V) -> Vec<V> {
    page.iter().map(value).collect()
}

/// The series and the scope of each scope id.
pub(crate) fn columns<'p>(scope_ids: impl Iterator<Item = &'p ScopeId>) -> (Vec<&'p str>, Vec<&'p str>) {
    scope_ids.map(|scope_id| (scope_id.series.as_str(), scope_id.scope.as_str())).unzip()
}

/// Reads the range in column `first` and the column after it.
pub(crate) fn range(row: &Row, first: usize) -> Option<PositionRange> {
    PositionRange::new(get_u64(row, first), get_u64(row, first + 1) + 1)
}

/// The first and the last position of each range.
pub(crate) fn bounds(ranges: impl Iterator<Item = PositionRange>) -> (Vec<i64>, Vec<i64>) {
    ranges.map(|range| (to_i64(range.from()), to_i64(range.to() - 1))).unzip()
}

/// Reads a series name in `column` and a scope in the column after it; `None` if the name is invalid.
pub(crate) fn scope_id(row: &Row, column: usize) -> Option<ScopeId> {
    let series = row.get::<_, &str>(column).parse().ok()?;
    Some(ScopeId { series, scope: ScopeKey::from_store(row.get(column + 1)) })
}

/// Positions are below 2^53 and versions count writes, so both fit a signed integer.
pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).expect("positions and versions are far below 2^63")
}

/// Only positions are written to these columns.
pub(crate) fn get_position(row: &Row, column: usize) -> Position {
    Position::new(get_u64(row, column)).expect("Bates writes only positions below 2^53 to this column")
}

/// Only [`to_i64`] writes these columns.
pub(crate) fn get_u64(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).expect("Bates writes no negative number to this column")
}
