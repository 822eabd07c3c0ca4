//! Leases of clients in the embedded store. Must never move a cursor.

use bates_core::{
    ClientLease, ClientLeaseFilter, Lease, LeaseEnd, LeaseStore, Place, Reason, ScopeKey, SeriesName,
    StoreError,
};
use jiff::Timestamp;
use rusqlite::{Connection, Result, Row, Transaction, params};
use uuid::Uuid;

use crate::SqliteStore;
use crate::held;
use crate::outbox::{event, strange};
use crate::write::{self, Refusable, ScopeRef, integer, whole};

impl LeaseStore for SqliteStore {
    async fn put_client_lease(
        &self,
        lease: ClientLease,
        used: Vec<Uuid>,
    ) -> std::result::Result<(), StoreError> {
        self.write(move |transaction| put(transaction, &lease, &used)).await
    }

    async fn end_client_lease(
        &self,
        id: Uuid,
        unused: Vec<Lease>,
    ) -> std::result::Result<LeaseEnd, StoreError> {
        self.write(move |transaction| Ok(Ok(end(transaction, id, &unused)?))).await
    }

    async fn client_leases(
        &self,
        of: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> std::result::Result<Vec<ClientLease>, StoreError> {
        self.read(|connection| list(connection, &of, after, limit))
    }
}

pub(crate) fn put(
    transaction: &Transaction<'_>,
    lease: &ClientLease,
    used: &[Uuid],
) -> Refusable<(), StoreError> {
    let Some((series_id, _)) = write::series(transaction, &lease.place.series)? else {
        return Ok(Err(write::unknown(&lease.place)));
    };
    let scope = lease.place.scope.as_str();
    let mut delete = transaction
        .prepare_cached("DELETE FROM client_lease WHERE id = ? AND series_id = ? AND scope = ?")?;
    for id in used {
        delete.execute(params![id.as_bytes(), series_id, scope])?;
    }
    let mut insert = transaction.prepare_cached(
        "INSERT OR IGNORE INTO client_lease (id, series_id, scope, first, last, who, leased_at)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    for range in &lease.ranges {
        let (first, last) = (integer(range.from()), integer(range.to() - 1));
        let at = lease.at.as_millisecond();
        insert.execute(params![lease.id.as_bytes(), series_id, scope, first, last, lease.who, at])?;
    }
    Ok(Ok(()))
}

/// Invariant: a position leaves the table in the transaction that writes down that nobody has it, if nobody has.
fn end(transaction: &Transaction<'_>, id: Uuid, unused: &[Lease]) -> Result<LeaseEnd> {
    let mut statement = transaction.prepare_cached(&format!("{SELECT} WHERE id = ? ORDER BY first"))?;
    let rows = statement.query_map(params![id.as_bytes()], |row| Ok((read(row)?, row.get::<_, i64>(7)?)))?;
    let rows: Vec<((ClientLease, Lease), i64)> = rows.collect::<Result<_>>()?;
    let Some(((ClientLease { place, .. }, _), series_id)) = rows.first() else {
        return Ok(LeaseEnd::Unknown);
    };
    let lost = match LeaseEnd::lost(rows.iter().map(|((_, range), _)| *range).collect(), unused) {
        Ok(lost) => lost,
        Err(outside) => return Ok(outside),
    };
    transaction.prepare_cached("DELETE FROM client_lease WHERE id = ?")?.execute(params![id.as_bytes()])?;
    for range in lost.iter() {
        held::lose(transaction, ScopeRef::new(*series_id, place.scope.as_str()), range, Reason::LeaseLost)?;
    }
    Ok(LeaseEnd::Ended { place: place.clone(), lost })
}

fn list(
    connection: &Connection,
    of: &ClientLeaseFilter,
    after: Option<Uuid>,
    limit: usize,
) -> Result<Vec<ClientLease>> {
    let mut statement = connection.prepare_cached(&format!(
        "{SELECT} WHERE id IN (
             SELECT DISTINCT id FROM client_lease
             WHERE (?1 IS NULL OR series_id = (SELECT id FROM series WHERE name = ?1)) AND (?2 IS NULL OR id > ?2)
             ORDER BY id LIMIT ?3)
         ORDER BY id, first",
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let after = after.as_ref().map(Uuid::as_bytes);
    let mut rows = statement.query(params![of.series.as_ref().map(SeriesName::as_str), after, limit])?;
    let mut leases: Vec<ClientLease> = Vec::new();
    while let Some(row) = rows.next()? {
        let (lease, range) = read(row)?;
        match leases.last_mut() {
            Some(last) if last.id == lease.id => last.ranges.push(range),
            _ => leases.push(ClientLease { ranges: vec![range], ..lease }),
        }
    }
    Ok(leases)
}

const SELECT: &str =
    "SELECT id, (SELECT name FROM series WHERE series.id = series_id), scope, first, last, who, leased_at,
    series_id FROM client_lease";

/// A row: the lease without its ranges, and one of them.
fn read(row: &Row<'_>) -> Result<(ClientLease, Lease)> {
    let lease = ClientLease {
        id: event(row.get(0)?),
        place: Place {
            series: row.get_ref(1)?.as_str()?.parse().map_err(|_| strange(1))?,
            scope: ScopeKey::from_store(row.get_ref(2)?.as_str()?),
        },
        ranges: Vec::new(),
        who: row.get::<_, String>(5)?.into(),
        at: Timestamp::from_millisecond(row.get(6)?).map_err(|_| strange(6))?,
    };
    Ok((lease, Lease::new(whole(row.get(3)?), whole(row.get(4)?) + 1).ok_or_else(|| strange(3))?))
}
