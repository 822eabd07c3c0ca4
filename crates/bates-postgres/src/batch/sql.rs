//! The statements of a batch: arrays in, so that one statement serves all its scopes. Pure SQL: nothing here begins,
//! commits or decides.

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

/// The index in the parameters: an ordinality counts from 1.
fn index(row: &Row) -> usize {
    usize::try_from(whole(row, 0) - 1).expect("an array has fewer elements")
}

fn promise(row: &Row, column: usize) -> Option<Promise> {
    row.get::<_, Option<&str>>(column)?.parse().ok()
}

/// Locks the series, in the order of their names, against other nodes that make scopes in them.
pub(crate) async fn lock_series(
    session: &Session,
    names: &[&str],
) -> Result<Vec<(String, LockedSeries)>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT name, scopes, promise, start FROM bates.series WHERE name = ANY ($1) ORDER BY name FOR NO KEY UPDATE";
    let rows = session.query(sql, &[&names]).await?;
    let read = |row: &Row| {
        let before = SeriesBefore { scopes: whole(row, 1), start: whole(row, 3) };
        (row.get(0), LockedSeries { before, promise: promise(row, 2) })
    };
    Ok(rows.iter().map(read).collect())
}

pub(crate) struct Locked {
    pub(crate) at: usize,
    pub(crate) cursor: Cursor,
    /// The first position past all adopted ones.
    pub(crate) adopted_to: u64,
    pub(crate) promise: Option<Promise>,
}

/// Locks the cursors, in the order of their places.
pub(crate) async fn lock_cursors(session: &Session, places: &[&ScopeId]) -> Result<Vec<Locked>, Error> {
    // A change of a promise waits for this batch, so the promise is the one that it began with.
    let sql = "SELECT wanted.at, cursor.next, cursor.version, cursor.adopted_to,
                   (SELECT promise FROM bates.series WHERE name = wanted.series)
               FROM UNNEST($1, $2) WITH ORDINALITY AS wanted (series, scope, at)
               JOIN bates.cursor ON cursor.series = wanted.series AND cursor.scope = wanted.scope
               ORDER BY cursor.series, cursor.scope FOR UPDATE OF cursor";
    let (series, scopes) = columns(places.iter().copied());
    let rows = session.query(sql, &[&series, &scopes]).await?;
    let read = |row: &Row| {
        let cursor = Cursor { next: whole(row, 1), version: whole(row, 2) };
        Locked { at: index(row), cursor, adopted_to: whole(row, 3), promise: promise(row, 4) }
    };
    Ok(rows.iter().map(read).collect())
}

/// Moves cursors, locked or new. One that goes back lowers `gapless_from`: what lies above was never handed out.
pub(crate) async fn move_cursors(session: &Session, moved: &[(&ScopeId, Cursor)]) -> Result<(), Error> {
    let sql = "INSERT INTO bates.cursor (series, scope, next, version) SELECT * FROM UNNEST($1, $2, $3, $4)
               ON CONFLICT (series, scope) DO UPDATE SET next = excluded.next, version = excluded.version,
                   gapless_from = least(cursor.gapless_from, excluded.next)";
    let (series, scopes) = columns(moved.iter().map(|(scope_id, _)| *scope_id));
    let (next, version): (Vec<i64>, Vec<i64>) =
        moved.iter().map(|(_, cursor)| (integer(cursor.next), integer(cursor.version))).unzip();
    session.query(sql, &[&series, &scopes, &next, &version]).await.map(drop)
}

/// Counts new scopes in their series, which are locked.
pub(crate) async fn count_scopes(session: &Session, made: &[(&str, u64)]) -> Result<(), Error> {
    if made.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE bates.series SET scopes = scopes + made.count
               FROM UNNEST($1, $2) AS made (name, count) WHERE series.name = made.name";
    let (names, counts): (Vec<&str>, Vec<i64>) =
        made.iter().map(|(name, count)| (*name, integer(*count))).unzip();
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
            // A recall waits for this batch, so the epoch is the one that it began with.
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

#[derive(Clone, Copy)]
pub(crate) struct By {
    pub(crate) node: Uuid,
    pub(crate) batch: Uuid,
}

/// Invariant: the key of each table is where a range begins, so a position that was granted twice would fail here.
pub(crate) async fn write_ranges(
    session: &Session,
    table: Table,
    ranges: &[(&ScopeId, PositionRange)],
    by: By,
) -> Result<(), Error> {
    if ranges.is_empty() {
        return Ok(());
    }
    let (series, scopes) = columns(ranges.iter().map(|(scope_id, _)| *scope_id));
    let (first, last) = bounds(ranges.iter().map(|(_, range)| *range));
    let of: [&dyn Parameter; 6] = [&series, &scopes, &first, &last, &by.node, &by.batch];
    session.query(&table.insert(), &of).await.map(drop)
}

/// Deletes the held ranges of a node in these scopes that begin below a position.
pub(crate) async fn delete_held_below(
    session: &Session,
    places: &[(&ScopeId, u64)],
    node: Uuid,
) -> Result<(), Error> {
    if places.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM bates.held_range AS held USING UNNEST($1, $2, $4) AS r (series, scope, past)
               WHERE held.series = r.series AND held.scope = r.scope AND held.node = $3 AND held.first < r.past";
    let (series, scopes) = columns(places.iter().map(|(scope_id, _)| *scope_id));
    let past: Vec<i64> = places.iter().map(|(_, to)| integer(*to)).collect();
    session.query(sql, &[&series, &scopes, &node, &past]).await.map(drop)
}

/// Deletes the held and pooled ranges of a batch: no caller got them.
pub(crate) async fn remove_batch(session: &Session, places: &[&ScopeId], batch: Uuid) -> Result<(), Error> {
    let (series, scopes) = columns(places.iter().copied());
    for table in ["held_range", "pooled"] {
        let sql = format!(
            "DELETE FROM bates.{table} AS granted USING UNNEST($1, $2) AS r (series, scope)
             WHERE granted.series = r.series AND granted.scope = r.scope AND granted.batch = $3"
        );
        session.query(&sql, &[&series, &scopes, &batch]).await?;
    }
    Ok(())
}

/// Shortens the held ranges of a node to these positions and above, which it has not issued.
pub(crate) async fn shorten_held(
    session: &Session,
    used: &[(&ScopeId, u64)],
    node: Uuid,
) -> Result<(), Error> {
    if used.is_empty() {
        return Ok(());
    }
    let remove = "DELETE FROM bates.held_range AS held USING UNNEST($1, $2, $3) AS r (series, scope, begin)
                  WHERE held.series = r.series AND held.scope = r.scope AND held.node = $4
                  AND held.last < r.begin";
    let shorten = "UPDATE bates.held_range AS held SET first = r.begin
                   FROM UNNEST($1, $2, $3) AS r (series, scope, begin)
                   WHERE held.series = r.series AND held.scope = r.scope AND held.node = $4
                   AND held.first < r.begin AND held.last >= r.begin";
    let (series, scopes) = columns(used.iter().map(|(scope_id, _)| *scope_id));
    let begin: Vec<i64> = used.iter().map(|(_, to)| integer(*to)).collect();
    let of: [&dyn Parameter; 4] = [&series, &scopes, &begin, &node];
    let (removed, shortened) = (session.query(remove, &of), session.query(shorten, &of));
    let (removed, shortened) = tokio::join!(biased; removed, shortened);
    removed.and(shortened).map(drop)
}

pub(crate) struct Holders {
    pub(crate) at: usize,
    /// Whether this node has rows of held ranges that it has issued.
    pub(crate) is_spent: bool,
    pub(crate) elsewhere: bool,
}

/// The scopes in which any node holds ranges, each with the position below which this node has issued everything.
pub(crate) async fn holders(
    session: &Session,
    scopes: &[(&ScopeId, u64)],
    node: Uuid,
) -> Result<Vec<Holders>, Error> {
    let sql = "SELECT r.at, bool_or(held.node = $4 AND held.first < r.spent_to),
                   bool_or(held.node <> $4 AND nodes.seen_at > now() - $5 * interval '1 second')
               FROM UNNEST($1, $2, $3) WITH ORDINALITY AS r (series, scope, spent_to, at)
               JOIN bates.held_range AS held ON held.series = r.series AND held.scope = r.scope
               LEFT JOIN bates.nodes ON nodes.id = held.node
               GROUP BY r.at";
    let (series, keys) = columns(scopes.iter().map(|(scope_id, _)| *scope_id));
    let spent_to: Vec<i64> = scopes.iter().map(|(_, to)| integer(*to)).collect();
    let rows = session.query(sql, &[&series, &keys, &spent_to, &node, &CRASHED_AFTER_SECONDS]).await?;
    let read = |row: &Row| Holders {
        at: index(row),
        is_spent: row.get(1),
        elsewhere: row.get::<_, Option<bool>>(2).unwrap_or(false),
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
    let reasons: Vec<&str> = lost.iter().map(|(_, missing)| missing.reason.name()).collect();
    session.query(sql, &[&series, &scopes, &first, &last, &reasons]).await.map(drop)
}

/// One value of each entry.
pub(crate) fn column<'p, T, V>(page: &'p [T], value: impl Fn(&'p T) -> V) -> Vec<V> {
    page.iter().map(value).collect()
}

/// The series and the scope of each place.
pub(crate) fn columns<'p>(places: impl Iterator<Item = &'p ScopeId>) -> (Vec<&'p str>, Vec<&'p str>) {
    places.map(|scope_id| (scope_id.series.as_str(), scope_id.scope.as_str())).unzip()
}

/// The range in the columns `first` and, after it, `last`.
pub(crate) fn range(row: &Row, first: usize) -> Option<PositionRange> {
    PositionRange::new(whole(row, first), whole(row, first + 1) + 1)
}

/// The first and the last position of each range.
pub(crate) fn bounds(ranges: impl Iterator<Item = PositionRange>) -> (Vec<i64>, Vec<i64>) {
    ranges.map(|range| (integer(range.from()), integer(range.to() - 1))).unzip()
}

/// The place in the columns `column`, a name, and, after it, a scope; `None` if the name is none.
pub(crate) fn scope_id(row: &Row, column: usize) -> Option<ScopeId> {
    let series = row.get::<_, &str>(column).parse().ok()?;
    Some(ScopeId { series, scope: ScopeKey::from_store(row.get(column + 1)) })
}

/// Positions are below 2^53 and versions count writes, so both fit a signed integer.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).expect("positions and versions are far below 2^63")
}

/// Only positions are written to these columns.
pub(crate) fn position(row: &Row, column: usize) -> Position {
    Position::new(whole(row, column)).expect("the column holds what was written: a position below 2^53")
}

/// Only [`integer`] writes these columns.
pub(crate) fn whole(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).expect("the column holds what was written: no negative number")
}
