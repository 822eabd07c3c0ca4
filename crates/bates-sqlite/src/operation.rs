//! The operations log in the embedded store. Records are read by time, or by chain and number.

use bates_core::{
    ChainDigest, ChainHead, Channel, Operation, OperationFilter, OperationKind, OperationRecord,
    OperationStore, SeriesName, StoreResult, host_name,
};
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, Result, Row, Transaction, params, params_from_iter};
use uuid::Uuid;

use crate::SqliteStore;
use crate::series_set::glob_patterns;
use crate::write::{execute, invalid_column, row, rows, to_i64, to_limit, to_u64};

/// The columns that [`read`] expects.
const COLUMNS: &str =
    "chain, number, previous, digest, id, at, caller, channel, kind, series, subject, before, after";

impl OperationStore for SqliteStore {
    async fn append_operation(&self, operation: Operation) -> StoreResult<()> {
        self.write(move |transaction| Ok(append(transaction, Some(&operation))?)).await
    }

    async fn operations(
        &self,
        filter: OperationFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<OperationRecord>> {
        let (conditions, mut values) = conditions(&filter, after);
        values.push(Value::Integer(to_limit(limit)));
        let sql = format!("SELECT {COLUMNS} FROM operation WHERE {conditions} ORDER BY at, id LIMIT ?");
        self.read(|connection| rows(connection, &sql, params_from_iter(values), read))
    }

    async fn chains(&self) -> StoreResult<Vec<ChainHead>> {
        // Also chains whose head was removed by hand, at number 0.
        let sql = "SELECT chain, coalesce(number, 0), coalesce(digest, zeroblob(32))
                   FROM (SELECT chain FROM operation UNION SELECT chain FROM operation_chain)
                   LEFT JOIN operation_chain USING (chain) ORDER BY chain";
        self.read(|connection| rows(connection, sql, [], read_head))
    }

    async fn chain_records(
        &self,
        chain: Box<str>,
        after: u64,
        limit: usize,
    ) -> StoreResult<Vec<OperationRecord>> {
        // One that cannot be read was changed by hand: the verification of the chain finds it missing.
        let readable = |row: &Row<'_>| Ok(read(row).ok());
        self.read(|connection| {
            Ok(chain_records(connection, &chain, after, limit, readable)?.into_iter().flatten().collect())
        })
    }

    async fn prune_chain(
        &self,
        chain: Box<str>,
        before: Timestamp,
        limit: usize,
        operation: Operation,
    ) -> StoreResult<u64> {
        self.write(move |transaction| Ok(prune(transaction, &chain, before, limit, &operation)?)).await
    }
}

/// Appends an operation, if there is one, to the chain of this host. A record with its id stays as it is.
pub(crate) fn append(transaction: &Transaction<'_>, operation: Option<&Operation>) -> Result<()> {
    let Some(operation) = operation else { return Ok(()) };
    let sql = "SELECT 1 FROM operation WHERE id = ?";
    if row(transaction, sql, [operation.id.as_bytes()], |_| Ok(()))?.is_some() {
        return Ok(());
    }
    let mut head = head(transaction, &host_name())?;
    insert(transaction, &head.append(operation.clone()), "")?;
    put_head(transaction, &head)
}

/// The head to which a record is appended. If it was set back by hand, the record gets a number past all others: it replaces
/// none, and the verification shows that it does not follow them.
fn head(connection: &Connection, chain: &str) -> Result<ChainHead> {
    let sql = "SELECT chain, number, digest FROM operation_chain WHERE chain = ?";
    let head = row(connection, sql, [chain], read_head)?.unwrap_or_else(|| ChainHead::new(chain));
    let sql = "SELECT coalesce(max(number), 0) FROM operation WHERE chain = ?";
    let last = row(connection, sql, [chain], |row| Ok(to_u64(row.get(0)?)))?.unwrap_or_default();
    Ok(ChainHead { number: head.number.max(last), ..head })
}

/// Inserts a record of a move. A move that is repeated brings it again: the one that is there stays.
pub(crate) fn insert_moved(transaction: &Transaction<'_>, record: &OperationRecord) -> Result<()> {
    insert(transaction, record, " ON CONFLICT DO NOTHING")
}

fn insert(transaction: &Transaction<'_>, record: &OperationRecord, on_conflict: &str) -> Result<()> {
    let OperationRecord { chain, number, previous, digest, operation } = record;
    let Operation { id, at, caller, channel, kind, series, subject, before, after } = operation;
    let sql = format!(
        "INSERT INTO operation ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?){on_conflict}"
    );
    let (at, series) = (at.as_microsecond(), series.as_ref().map(SeriesName::as_str));
    let values = params![
        chain,
        to_i64(*number),
        previous.0,
        digest.0,
        id.as_bytes(),
        at,
        caller,
        channel.name(),
        kind.name(),
        series,
        subject,
        before,
        after
    ];
    execute(transaction, &sql, values).map(drop)
}

/// A chain only grows: a move that is repeated copies its heads again.
pub(crate) fn put_head(transaction: &Transaction<'_>, head: &ChainHead) -> Result<()> {
    let sql = "INSERT INTO operation_chain (chain, number, digest) VALUES (?, ?, ?)
               ON CONFLICT (chain) DO UPDATE SET number = excluded.number, digest = excluded.digest
                   WHERE excluded.number > operation_chain.number";
    execute(transaction, sql, params![head.chain, to_i64(head.number), head.digest.0]).map(drop)
}

fn chain_records<T>(
    connection: &Connection,
    chain: &str,
    after: u64,
    limit: usize,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let sql =
        format!("SELECT {COLUMNS} FROM operation WHERE chain = ? AND number > ? ORDER BY number LIMIT ?");
    rows(connection, &sql, params![chain, to_i64(after), to_limit(limit)], read)
}

fn prune(
    transaction: &Transaction<'_>,
    chain: &str,
    before: Timestamp,
    limit: usize,
    operation: &Operation,
) -> Result<u64> {
    let old = chain_records(transaction, chain, 0, limit, read)?;
    let old: Vec<_> = old.into_iter().take_while(|record| record.operation.at < before).collect();
    let Some(last) = old.last() else { return Ok(0) };
    let sql = "DELETE FROM operation WHERE chain = ? AND number <= ?";
    execute(transaction, sql, params![chain, to_i64(last.number)])?;
    let mut head = head(transaction, chain)?;
    insert(transaction, &head.append_removal(last, operation.clone()), "")?;
    put_head(transaction, &head)?;
    Ok(old.len() as u64)
}

fn conditions(filter: &OperationFilter, after: Option<(Timestamp, Uuid)>) -> (String, Vec<Value>) {
    let text = |text: &str| Value::Text(text.to_owned());
    let micros = |time: Timestamp| Value::Integer(time.as_microsecond());
    let (mut sql, mut values) = ("true".to_owned(), Vec::new());
    let mut add = |condition: &str, parameters: Vec<Value>| {
        sql.extend([" AND ", condition]);
        values.extend(parameters);
    };
    if let Some(viewer) = &filter.seen_by {
        let sql = "(caller = ? OR EXISTS (SELECT 1 FROM json_each(?) WHERE operation.series GLOB value))";
        add(sql, vec![text(&viewer.caller), Value::Text(glob_patterns(&viewer.series))]);
    }
    filter.series.iter().for_each(|series| add("series = ?", vec![text(series.as_str())]));
    filter.caller.iter().for_each(|caller| add("caller = ?", vec![text(caller)]));
    filter.kind.iter().for_each(|kind| add("kind = ?", vec![text(kind.name())]));
    filter.since.iter().for_each(|since| add("at >= ?", vec![micros(*since)]));
    filter.until.iter().for_each(|until| add("at < ?", vec![micros(*until)]));
    if let Some((at, id)) = after {
        add("(at, id) > (?, ?)", vec![micros(at), Value::Blob(id.as_bytes().to_vec())]);
    }
    (sql, values)
}

fn read_head(row: &Row<'_>) -> Result<ChainHead> {
    let (number, digest) = (to_u64(row.get(1)?), ChainDigest(row.get(2)?));
    Ok(ChainHead { chain: row.get::<_, String>(0)?.into(), number, digest })
}

fn read(row: &Row<'_>) -> Result<OperationRecord> {
    let text = |column| row.get::<_, String>(column).map(Into::into);
    let optional = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(column)?.map(Into::into));
    let series = row.get::<_, Option<String>>(9)?.map(|name| name.parse());
    Ok(OperationRecord {
        chain: text(0)?,
        number: to_u64(row.get(1)?),
        previous: ChainDigest(row.get(2)?),
        digest: ChainDigest(row.get(3)?),
        operation: Operation {
            id: Uuid::from_bytes(row.get(4)?),
            at: Timestamp::from_microsecond(row.get(5)?).map_err(|_| invalid_column(5))?,
            caller: text(6)?,
            channel: Channel::from_name(row.get_ref(7)?.as_str()?).ok_or_else(|| invalid_column(7))?,
            kind: OperationKind::from_name(row.get_ref(8)?.as_str()?).ok_or_else(|| invalid_column(8))?,
            series: series.transpose().map_err(|_| invalid_column(9))?,
            subject: text(10)?,
            before: optional(11)?,
            after: optional(12)?,
        },
    })
}
