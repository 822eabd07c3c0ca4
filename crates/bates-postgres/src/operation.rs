//! The operations log in the shared store. A transaction appends to the chain of its host last: it locks the head of the
//! chain, which other nodes on that host wait for. Times are those of the nodes.

use bates_core::{
    ChainDigest, ChainHead, Channel, Operation, OperationFilter, OperationKind, OperationRecord,
    OperationStore, SeriesName, StoreResult, host_name,
};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::audit::micros;
use crate::batch::sql::{get_u64, to_i64};
use crate::error::Failure;
use crate::listed::like_patterns;
use crate::moving::lock_unmarked;
use crate::outbox::{to_limit, without_nul};
use crate::parameter::Parameter;
use crate::session::Session;

/// The columns that [`read`] expects.
const COLUMNS: &str =
    "chain, number, previous, digest, id, (extract(epoch FROM at) * 1000000)::bigint, caller, channel,
    kind, series, subject, before, after";

const CONDITIONS: &str = "($1::text IS NULL OR caller = $1 OR series LIKE ANY ($2))
    AND ($3::text IS NULL OR series = $3) AND ($4::text IS NULL OR caller = $4)
    AND ($5::text IS NULL OR kind = $5)
    AND ($6::float8 IS NULL OR at >= 'epoch'::timestamptz + $6 * interval '1 microsecond')
    AND ($7::float8 IS NULL OR at < 'epoch'::timestamptz + $7 * interval '1 microsecond')
    AND ($8::float8 IS NULL OR (at, id) > ('epoch'::timestamptz + $8 * interval '1 microsecond', $9))";

impl OperationStore for PostgresStore {
    async fn append_operation(&self, operation: Operation) -> StoreResult<()> {
        let operation = &operation;
        self.with_session(|session| async move {
            let write = async {
                lock_unmarked(&session).await?;
                append(&session, Some(operation)).await
            };
            session.transact(write).await
        })
        .await
    }

    async fn operations(
        &self,
        filter: OperationFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<OperationRecord>> {
        let viewer = filter.seen_by.as_ref();
        let among = viewer.map_or_else(Vec::new, |viewer| like_patterns(&viewer.series));
        let viewer = viewer.map(|viewer| without_nul(&viewer.caller));
        let (series, caller) =
            (filter.series.as_ref().map(SeriesName::as_str), filter.caller.as_deref().map(without_nul));
        let kind = filter.kind.map(OperationKind::name);
        let (since, until) = (filter.since.map(micros), filter.until.map(micros));
        let (after_at, after_id) = (after.map(|(at, _)| micros(at)), after.map(|(_, id)| id));
        let parameters: [&dyn Parameter; 10] = [
            &viewer,
            &among,
            &series,
            &caller,
            &kind,
            &since,
            &until,
            &after_at,
            &after_id,
            &to_limit(limit),
        ];
        let sql =
            format!("SELECT {COLUMNS} FROM bates.operation WHERE {CONDITIONS} ORDER BY at, id LIMIT $10");
        Ok(self.query(&sql, &parameters).await?.iter().map(read).collect())
    }

    async fn chains(&self) -> StoreResult<Vec<ChainHead>> {
        // Also chains whose head was removed by hand, at number 0.
        let sql = "SELECT chain, coalesce(number, 0), coalesce(digest, ''::bytea)
                   FROM (SELECT chain FROM bates.operation UNION SELECT chain FROM bates.operation_chain) AS known
                   LEFT JOIN bates.operation_chain USING (chain) ORDER BY chain";
        Ok(self.query(sql, &[]).await?.iter().map(read_head).collect())
    }

    async fn chain_records(
        &self,
        chain: Box<str>,
        after: u64,
        limit: usize,
    ) -> StoreResult<Vec<OperationRecord>> {
        let (sql, after, limit) = (chain_records(), to_i64(after), to_limit(limit));
        Ok(self.query(&sql, &[&without_nul(&chain), &after, &limit]).await?.iter().map(read).collect())
    }

    async fn prune_chain(
        &self,
        chain: Box<str>,
        before: Timestamp,
        limit: usize,
        operation: Operation,
    ) -> StoreResult<u64> {
        let (chain, operation) = (&*chain, &operation);
        self.with_session(|session| async move {
            session.transact(prune(&session, chain, before, limit, operation)).await
        })
        .await
    }
}

fn chain_records() -> String {
    format!("SELECT {COLUMNS} FROM bates.operation WHERE chain = $1 AND number > $2 ORDER BY number LIMIT $3")
}

/// Appends an operation, if there is one, to the chain of this host. A record with its id stays as it is: the transaction
/// runs again if its answer was lost.
pub(crate) async fn append(session: &Session, operation: Option<&Operation>) -> Result<(), Failure> {
    let Some(operation) = operation else { return Ok(()) };
    let mut head = lock_head(session, &host_name()).await?;
    let known = "SELECT FROM bates.operation WHERE id = $1";
    if session.query(known, &[&operation.id]).await?.is_empty() {
        insert(session, &head.append(operation.clone())).await?;
        put_head(session, &head).await?;
    }
    Ok(())
}

/// The head of a chain, locked until the transaction ends.
async fn lock_head(session: &Session, chain: &str) -> Result<ChainHead, Failure> {
    let create = "INSERT INTO bates.operation_chain (chain, number, digest) VALUES ($1, 0, $2)
                  ON CONFLICT (chain) DO NOTHING";
    let new = ChainHead::new(chain);
    session.query(create, &[&chain, &&new.digest.0[..]]).await?;
    let sql = "SELECT chain, number, digest FROM bates.operation_chain WHERE chain = $1 FOR UPDATE";
    let head = session.query(sql, &[&chain]).await?.first().map_or(new, read_head);
    let sql = "SELECT coalesce(max(number), 0) FROM bates.operation WHERE chain = $1";
    let highest = session.query(sql, &[&chain]).await?.first().map_or(0, |row| get_u64(row, 0));
    Ok(head.beyond(highest))
}

async fn insert(session: &Session, record: &OperationRecord) -> Result<(), Failure> {
    write(session, record, "").await
}

/// A record that an interrupted move has copied already stays as it is.
pub(crate) async fn import(session: &Session, record: &OperationRecord) -> Result<(), Failure> {
    write(session, record, "ON CONFLICT DO NOTHING").await
}

async fn write(session: &Session, record: &OperationRecord, on_conflict: &str) -> Result<(), Failure> {
    let OperationRecord { chain, number, previous, digest, operation } = record;
    let Operation { id, at, caller, channel, kind, series, subject, before, after } = operation;
    let sql = format!(
        "INSERT INTO bates.operation
             (chain, number, previous, digest, id, at, caller, channel, kind, series, subject, before, after)
         VALUES ($1, $2, $3, $4, $5, 'epoch'::timestamptz + $6 * interval '1 microsecond', $7, $8, $9, $10, $11,
             $12, $13)
         {on_conflict}"
    );
    let (previous, digest) = (&previous.0[..], &digest.0[..]);
    let series = series.as_ref().map(SeriesName::as_str);
    let parameters: [&dyn Parameter; 13] = [
        chain,
        &to_i64(*number),
        &previous,
        &digest,
        id,
        &micros(*at),
        caller,
        &channel.name(),
        &kind.name(),
        &series,
        subject,
        before,
        after,
    ];
    session.query(&sql, &parameters).await?;
    Ok(())
}

/// A chain only grows: a move that is repeated copies its heads again.
pub(crate) async fn put_head(session: &Session, head: &ChainHead) -> Result<(), Failure> {
    let sql = "INSERT INTO bates.operation_chain (chain, number, digest) VALUES ($1, $2, $3)
               ON CONFLICT (chain) DO UPDATE SET number = excluded.number, digest = excluded.digest
                   WHERE excluded.number > operation_chain.number";
    session.query(sql, &[&head.chain, &to_i64(head.number), &&head.digest.0[..]]).await?;
    Ok(())
}

async fn prune(
    session: &Session,
    chain: &str,
    before: Timestamp,
    limit: usize,
    operation: &Operation,
) -> Result<u64, Failure> {
    lock_unmarked(session).await?;
    let mut head = lock_head(session, chain).await?;
    let rows = session.query(&chain_records(), &[&chain, &0_i64, &to_limit(limit)]).await?;
    let old: Vec<_> = rows.iter().map(read).take_while(|record| record.is_removable(before)).collect();
    let Some(last) = old.last() else { return Ok(0) };
    let sql = "DELETE FROM bates.operation WHERE chain = $1 AND number <= $2";
    session.query(sql, &[&chain, &to_i64(last.number)]).await?;
    insert(session, &head.append_removal(last, operation.clone())).await?;
    put_head(session, &head).await?;
    Ok(old.len() as u64)
}

fn digest(row: &Row, column: usize) -> ChainDigest {
    ChainDigest(row.get::<_, &[u8]>(column).try_into().unwrap_or_default())
}

fn read_head(row: &Row) -> ChainHead {
    ChainHead { chain: row.get::<_, &str>(0).into(), number: get_u64(row, 1), digest: digest(row, 2) }
}

/// Reads what can be read: a record that was changed by hand has a wrong digest, and must not stop a node.
fn read(row: &Row) -> OperationRecord {
    let text = |column: usize| row.get::<_, &str>(column).into();
    let optional = |column: usize| row.get::<_, Option<&str>>(column).map(Into::into);
    OperationRecord {
        chain: text(0),
        number: get_u64(row, 1),
        previous: digest(row, 2),
        digest: digest(row, 3),
        operation: Operation {
            id: row.get(4),
            at: Timestamp::from_microsecond(row.get(5)).unwrap_or_default(),
            caller: text(6),
            channel: Channel::from_name(row.get(7)).unwrap_or(Channel::Server),
            kind: OperationKind::from_name(row.get(8)).unwrap_or(OperationKind::Unreadable),
            series: row.get::<_, Option<&str>>(9).and_then(|name| name.parse().ok()),
            subject: text(10),
            before: optional(11),
            after: optional(12),
        },
    }
}
