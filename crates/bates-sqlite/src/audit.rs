//! The audit in the embedded store. The writer writes records; they are read by time, position or caller.

use bates_core::{
    AuditFilter, AuditRecord, AuditStamp, AuditStore, Channel, Position, ScopeFilter, SeriesName, StoreResult,
};
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Result, Row, Transaction, params, params_from_iter};
use uuid::Uuid;

use crate::SqliteStore;
use crate::error::WriteResult;
use crate::listed::{glob_patterns, scope_condition};
use crate::planted::{Bug, hold_back, is_planted};
use crate::write::{self, execute, invalid_column, to_i64, to_limit, to_u64};

impl AuditStore for SqliteStore {
    async fn record(&self, records: Vec<AuditRecord>) -> StoreResult<()> {
        let records = if is_planted(Bug::AnswerBeforeRecord) { hold_back(records) } else { records };
        self.write_beside_cursors(move |transaction| record(transaction, &records)).await
    }

    async fn records(
        &self,
        filter: AuditFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<AuditRecord>> {
        let (conditions, mut values) = conditions(&filter, after);
        values.push(Value::Integer(to_limit(limit)));
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
            let values = params![series.as_str(), before.as_microsecond(), to_limit(limit)];
            Ok(execute(transaction, sql, values)? as u64)
        })
        .await
    }
}

pub(crate) fn record(transaction: &Transaction<'_>, records: &[AuditRecord]) -> WriteResult<()> {
    for record in records {
        let series_id = write::series_id(transaction, &record.scope_id.series)?;
        insert(transaction, series_id, record)?;
    }
    Ok(())
}

/// Ignores a record that is already there: an id is used only once.
pub(crate) fn insert(transaction: &Transaction<'_>, series_id: i64, record: &AuditRecord) -> Result<()> {
    let AuditRecord { id, scope_id, range, first, last, count, stamp: AuditStamp { caller, channel, at } } =
        record;
    let sql = "INSERT OR IGNORE INTO audit
                   (taken_at, id, series_id, scope, first, last, first_number, last_number, count, caller, channel)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let (at, id, scope) = (at.as_microsecond(), id.as_bytes(), scope_id.scope.as_str());
    let ((from, to), count) = (write::bounds(*range), to_i64(*count));
    let values = params![at, id, series_id, scope, from, to, first, last, count, caller, channel.name()];
    execute(transaction, sql, values).map(drop)
}

const HAS_WORDS: &str =
    "NOT EXISTS (SELECT 1 FROM json_each(?) WHERE instr(' ' || scope || ' ', ' ' || value || ' ') = 0)";

const LAST_BEFORE: &str = "first = (SELECT max(first) FROM audit AS earlier
    WHERE earlier.series_id = (SELECT id FROM series WHERE name = ?) AND earlier.scope = ? AND earlier.first <= ?)
    AND last >= ?";

/// Ranges do not overlap, so only the last range that begins at or before a position can contain it.
fn covers(filter: &AuditFilter, position: Position) -> (&'static str, Vec<Value>) {
    let text = |text: &str| Value::Text(text.to_owned());
    let at = Value::Integer(to_i64(position.value()));
    match (&filter.series, filter.scope.as_ref().and_then(ScopeFilter::exact)) {
        (Some(series), Some(scope)) => {
            (LAST_BEFORE, vec![text(series.as_str()), text(scope.as_str()), at.clone(), at])
        }
        _ => ("first <= ? AND last >= ?", vec![at.clone(), at]),
    }
}

/// A filter as SQL.
fn conditions(filter: &AuditFilter, after: Option<(Timestamp, Uuid)>) -> (String, Vec<Value>) {
    let text = |text: &str| Value::Text(text.to_owned());
    let micros = |time: Timestamp| Value::Integer(time.as_microsecond());
    let (mut sql, mut values) = ("true".to_owned(), Vec::new());
    let mut add = |condition: &str, parameters: Vec<Value>| {
        sql.extend([" AND ", condition]);
        values.extend(parameters);
    };
    if filter.among.patterns().is_some() {
        let sql = "series_id IN (SELECT series.id FROM series, json_each(?) WHERE series.name GLOB value)";
        add(sql, vec![Value::Text(glob_patterns(&filter.among))]);
    }
    if let Some(series) = &filter.series {
        add("series_id = (SELECT id FROM series WHERE name = ?)", vec![text(series.as_str())]);
    }
    if let Some(scope) = &filter.scope {
        let (exact, words) = scope_condition(Some(scope));
        let words = || (HAS_WORDS, vec![Value::Text(words)]);
        let (condition, parameters) = exact.map_or_else(words, |exact| ("scope = ?", vec![text(exact)]));
        add(condition, parameters);
    }
    if let Some(position) = filter.position {
        let (condition, parameters) = covers(filter, position);
        add(condition, parameters);
    }
    if let Some(caller) = &filter.caller {
        add("caller = ?", vec![text(caller)]);
    }
    let times = [("taken_at >= ?", filter.since), ("taken_at < ?", filter.until)];
    for (condition, time) in times.into_iter().filter_map(|(condition, time)| Some((condition, time?))) {
        add(condition, vec![micros(time)]);
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
        range: write::range(row, 3)?.ok_or_else(|| invalid_column(3))?,
        first: text(5)?,
        last: text(6)?,
        count: to_u64(row.get(7)?),
        stamp: AuditStamp {
            caller: text(8)?,
            channel: Channel::from_name(row.get_ref(9)?.as_str()?).ok_or_else(|| invalid_column(9))?,
            at: Timestamp::from_microsecond(row.get(10)?).map_err(|_| invalid_column(10))?,
        },
    })
}
