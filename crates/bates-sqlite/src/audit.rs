//! The audit in the embedded store: records are written by the writer, and read by time, position or caller.

use bates_core::{AuditFilter, AuditRecord, AuditStamp, AuditStore, Channel, SeriesName, StoreResult};
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Result, Row, Transaction, params, params_from_iter};
use uuid::Uuid;

use crate::SqliteStore;
use crate::planted::{Bug, held_back, is_planted};
use crate::write::{self, Refusable, bounded, execute, integer, strange, whole};

impl AuditStore for SqliteStore {
    async fn record(&self, records: Vec<AuditRecord>) -> StoreResult<()> {
        let records = if is_planted(Bug::AnswerBeforeRecord) { held_back(records) } else { records };
        self.write(move |transaction| record(transaction, &records)).await
    }

    async fn records(
        &self,
        of: AuditFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<AuditRecord>> {
        let (conditions, mut values) = conditions(&of, after);
        values.push(Value::Integer(bounded(limit)));
        let sql = format!(
            "SELECT id, (SELECT name FROM series WHERE series.id = series_id), scope, first, last, first_number,
                 last_number, count, caller, channel, taken_at
             FROM audit WHERE {conditions} ORDER BY taken_at, id LIMIT ?"
        );
        self.read(|connection| write::rows(connection, &sql, params_from_iter(values), read))
    }

    async fn prune_records(&self, series: SeriesName, before: Timestamp, limit: usize) -> StoreResult<u64> {
        let sql = "DELETE FROM audit WHERE (taken_at, id) IN (
                       SELECT taken_at, id FROM audit
                       WHERE series_id = (SELECT id FROM series WHERE name = ?) AND taken_at < ? LIMIT ?)";
        self.write(move |transaction| {
            let of = params![series.as_str(), before.as_microsecond(), bounded(limit)];
            Ok(Ok(execute(transaction, sql, of)? as u64))
        })
        .await
    }
}

pub(crate) fn record(transaction: &Transaction<'_>, records: &[AuditRecord]) -> Refusable<()> {
    for record in records {
        let series = &record.scope_id.series;
        let Some(series_id) = write::series(transaction, series)? else {
            return Ok(Err(write::unknown(series)));
        };
        insert(transaction, series_id, record)?;
    }
    Ok(Ok(()))
}

/// A record with the same id is the same record.
pub(crate) fn insert(transaction: &Transaction<'_>, series_id: i64, record: &AuditRecord) -> Result<()> {
    let AuditRecord { id, scope_id, range, first, last, count, stamp: AuditStamp { caller, channel, at } } =
        record;
    let sql = "INSERT OR IGNORE INTO audit
                   (taken_at, id, series_id, scope, first, last, first_number, last_number, count, caller, channel)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let (at, id, scope) = (at.as_microsecond(), id.as_bytes(), scope_id.scope.as_str());
    let (from, to, count) = (integer(range.from()), integer(range.to() - 1), integer(*count));
    let values = params![at, id, series_id, scope, from, to, first, last, count, caller, channel.name()];
    execute(transaction, sql, values).map(drop)
}

/// A filter as SQL. Ranges do not overlap, so a position is in the last one that begins at it or before.
fn conditions(of: &AuditFilter, after: Option<(Timestamp, Uuid)>) -> (String, Vec<Value>) {
    let text = |text: &str| Value::Text(text.to_owned());
    let micros = |time: Timestamp| Value::Integer(time.as_microsecond());
    let (mut sql, mut values) = ("true".to_owned(), Vec::new());
    let mut add = |condition: &str, given: Vec<Value>| {
        sql.extend([" AND ", condition]);
        values.extend(given);
    };
    if let Some(series) = &of.series {
        add("series_id = (SELECT id FROM series WHERE name = ?)", vec![text(series.as_str())]);
    }
    if let Some(scope) = &of.scope {
        add("scope = ?", vec![text(scope.as_str())]);
    }
    if let Some(position) = of.position.map(|position| Value::Integer(integer(position.value()))) {
        match (&of.series, &of.scope) {
            (Some(series), Some(scope)) => add(
                "first = (SELECT max(first) FROM audit AS begun
                    WHERE begun.series_id = (SELECT id FROM series WHERE name = ?) AND begun.scope = ? AND begun.first <= ?)",
                vec![text(series.as_str()), text(scope.as_str()), position.clone()],
            ),
            _ => add("first <= ?", vec![position.clone()]),
        }
        add("last >= ?", vec![position]);
    }
    if let Some(caller) = &of.caller {
        add("caller = ?", vec![text(caller)]);
    }
    if let Some(since) = of.since {
        add("taken_at >= ?", vec![micros(since)]);
    }
    if let Some(until) = of.until {
        add("taken_at < ?", vec![micros(until)]);
    }
    if let Some((at, id)) = after {
        add("(taken_at, id) > (?, ?)", vec![micros(at), Value::Blob(id.as_bytes().to_vec())]);
    }
    (sql, values)
}

fn read(row: &Row<'_>) -> Result<AuditRecord> {
    let text = |column| row.get::<_, String>(column).map(Into::into);
    Ok(AuditRecord {
        id: Uuid::from_bytes(row.get(0)?),
        scope_id: write::scope_id(row, 1)?,
        range: write::range(row, 3)?.ok_or_else(|| strange(3))?,
        first: text(5)?,
        last: text(6)?,
        count: whole(row.get(7)?),
        stamp: AuditStamp {
            caller: text(8)?,
            channel: Channel::named(row.get_ref(9)?.as_str()?).ok_or_else(|| strange(9))?,
            at: Timestamp::from_microsecond(row.get(10)?).map_err(|_| strange(10))?,
        },
    })
}
