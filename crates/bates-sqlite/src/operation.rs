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
use crate::listed::glob_patterns;
use crate::write::{execute, row, rows, to_i64, to_limit, to_u64};

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
        self.read(|connection| chain_records(connection, &chain, after, limit))
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
    insert(transaction, &head.append(operation.clone()))?;
    put_head(transaction, &head)
}

fn head(connection: &Connection, chain: &str) -> Result<ChainHead> {
    let sql = "SELECT chain, number, digest FROM operation_chain WHERE chain = ?";
    let head = row(connection, sql, [chain], read_head)?.unwrap_or_else(|| ChainHead::new(chain));
    let sql = "SELECT coalesce(max(number), 0) FROM operation WHERE chain = ?";
    let highest = row(connection, sql, [chain], |row| row.get(0))?.map_or(0, to_u64);
    Ok(head.beyond(highest))
}

fn insert(transaction: &Transaction<'_>, record: &OperationRecord) -> Result<()> {
    write(transaction, "INSERT", record)
}

/// A record that an interrupted move has copied already stays as it is.
pub(crate) fn import(transaction: &Transaction<'_>, record: &OperationRecord) -> Result<()> {
    write(transaction, "INSERT OR IGNORE", record)
}

fn write(transaction: &Transaction<'_>, verb: &str, record: &OperationRecord) -> Result<()> {
    let OperationRecord { chain, number, previous, digest, operation } = record;
    let Operation { id, at, caller, channel, kind, series, subject, before, after } = operation;
    let sql = format!(
        "{verb} INTO operation
             (chain, number, previous, digest, id, at, caller, channel, kind, series, subject, before, after)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
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

fn chain_records(
    connection: &Connection,
    chain: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<OperationRecord>> {
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
    let old = chain_records(transaction, chain, 0, limit)?;
    let old: Vec<_> = old.into_iter().take_while(|record| record.is_removable(before)).collect();
    let Some(last) = old.last() else { return Ok(0) };
    let sql = "DELETE FROM operation WHERE chain = ? AND number <= ?";
    execute(transaction, sql, params![chain, to_i64(last.number)])?;
    let mut head = head(transaction, chain)?;
    insert(transaction, &head.append_removal(last, operation.clone()))?;
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
    let (number, digest) = (to_u64(row.get(1)?), digest(row, 2));
    Ok(ChainHead { chain: row.get::<_, String>(0)?.into(), number, digest })
}

/// One that was changed by hand is another digest, which a verification finds.
fn digest(row: &Row<'_>, column: usize) -> ChainDigest {
    ChainDigest(row.get(column).unwrap_or_default())
}

/// Reads what can be read: a record that was changed by hand has a wrong digest, and must not stop a server.
fn read(row: &Row<'_>) -> Result<OperationRecord> {
    let text = |column: usize| row.get_ref(column).ok()?.as_str().ok().map(Into::<Box<str>>::into);
    let (at, series) = (row.get(5).unwrap_or_default(), text(9).and_then(|name| name.parse().ok()));
    Ok(OperationRecord {
        chain: row.get::<_, String>(0)?.into(),
        number: to_u64(row.get(1)?),
        previous: digest(row, 2),
        digest: digest(row, 3),
        operation: Operation {
            id: Uuid::from_bytes(row.get(4).unwrap_or_default()),
            at: Timestamp::from_microsecond(at).unwrap_or_default(),
            caller: text(6).unwrap_or_default(),
            channel: text(7).and_then(|name| Channel::from_name(&name)).unwrap_or(Channel::Server),
            kind: text(8)
                .and_then(|name| OperationKind::from_name(&name))
                .unwrap_or(OperationKind::Unreadable),
            series,
            subject: text(10).unwrap_or_default(),
            before: text(11),
            after: text(12),
        },
    })
}
