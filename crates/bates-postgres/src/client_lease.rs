//! Leases of clients in the shared store. Must never move a cursor, and may write what it wrote before.

use bates_core::{
    ClientLease, ClientLeaseFilter, Lease, LeaseEnd, LeaseStore, Missing, Place, Reason, ScopeKey,
    SeriesName, StoreError,
};
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql::{self, integer, whole};
use crate::error::Failed;
use crate::moving::check_not_left;
use crate::session::Session;

impl LeaseStore for PostgresStore {
    /// Sent together: one round trip, and one to commit.
    async fn put_client_lease(&self, lease: ClientLease, used: Vec<Uuid>) -> Result<(), StoreError> {
        let (lease, used) = (&lease, &used);
        self.done(|session| async move {
            let (began, ended, put, is_here) = tokio::join!(biased;
                session.begin(), end_used(&session, &lease.place, used), put(&session, lease), check_not_left(&session));
            began?;
            ended?;
            put?;
            is_here?;
            Ok(session.batch_execute("COMMIT").await?)
        })
        .await
    }

    /// A try that was committed and not answered is made again, and that one finds no lease.
    async fn end_client_lease(&self, id: Uuid, unused: Vec<Lease>) -> Result<LeaseEnd, StoreError> {
        let unused = &unused;
        self.done(|session| async move {
            session.begin().await?;
            let ended = end(&session, id, unused).await?;
            check_not_left(&session).await?;
            session.batch_execute("COMMIT").await?;
            Ok(ended)
        })
        .await
    }

    async fn client_leases(
        &self,
        of: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<ClientLease>, StoreError> {
        let of = &of;
        self.done(|session| async move { list(&session, of, after, limit).await }).await
    }
}

async fn end_used(session: &Session, place: &Place, used: &[Uuid]) -> Result<(), Failed> {
    if used.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM bates.client_lease WHERE id = ANY ($1) AND series = $2 AND scope = $3";
    let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
        (&used, Type::UUID_ARRAY),
        (&place.series.as_str(), Type::TEXT),
        (&place.scope.as_str(), Type::TEXT),
    ];
    session.query_typed(sql, &parameters).await?;
    Ok(())
}

pub(crate) async fn put(session: &Session, lease: &ClientLease) -> Result<(), Failed> {
    let sql = "INSERT INTO bates.client_lease (id, series, scope, first, last, who, leased_at)
               SELECT $1, $2, $3, range.first, range.last, $6, to_timestamp($7::bigint / 1000.0)
               FROM UNNEST($4, $5) AS range (first, last) ON CONFLICT DO NOTHING";
    let first: Vec<i64> = lease.ranges.iter().map(|range| integer(range.from())).collect();
    let last: Vec<i64> = lease.ranges.iter().map(|range| integer(range.to() - 1)).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 7] = [
        (&lease.id, Type::UUID),
        (&lease.place.series.as_str(), Type::TEXT),
        (&lease.place.scope.as_str(), Type::TEXT),
        (&first, Type::INT8_ARRAY),
        (&last, Type::INT8_ARRAY),
        (&&*lease.who, Type::TEXT),
        (&lease.at.as_millisecond(), Type::INT8),
    ];
    session.query_typed(sql, &parameters).await?;
    Ok(())
}

/// Invariant: a position leaves the table in the transaction that writes down that nobody has it, if nobody has.
async fn end(session: &Session, id: Uuid, unused: &[Lease]) -> Result<LeaseEnd, Failed> {
    let sql =
        "SELECT series, scope, first, last FROM bates.client_lease WHERE id = $1 ORDER BY first FOR UPDATE";
    let rows = session.query_typed(sql, &[(&id, Type::UUID)]).await?;
    let Some(first) = rows.first() else { return Ok(LeaseEnd::Unknown) };
    let leased = rows.iter().filter_map(|row| Lease::new(whole(row, 2), whole(row, 3) + 1)).collect();
    let lost = match LeaseEnd::lost(leased, unused) {
        Ok(lost) => lost,
        Err(outside) => return Ok(outside),
    };
    session.execute_typed("DELETE FROM bates.client_lease WHERE id = $1", &[(&id, Type::UUID)]).await?;
    let place = place(first.get(0), first.get(1))?;
    let missing: Vec<(&Place, Missing)> =
        Missing::all(lost.iter(), Reason::LeaseLost).map(|missing| (&place, missing)).collect();
    sql::write_lost(session, &missing).await?;
    Ok(LeaseEnd::Ended { place, lost })
}

async fn list(
    session: &Session,
    of: &ClientLeaseFilter,
    after: Option<Uuid>,
    limit: usize,
) -> Result<Vec<ClientLease>, Failed> {
    let sql = "SELECT id, series, scope, first, last, who, (extract(epoch FROM leased_at) * 1000)::bigint
               FROM bates.client_lease WHERE id IN (
                   SELECT DISTINCT id FROM bates.client_lease
                   WHERE ($1::text IS NULL OR series = $1) AND ($2::uuid IS NULL OR id > $2)
                   ORDER BY id LIMIT $3)
               ORDER BY id, first";
    let series = of.series.as_ref().map(SeriesName::as_str);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&series, Type::TEXT), (&after, Type::UUID), (&limit, Type::INT8)];
    let mut leases: Vec<ClientLease> = Vec::new();
    for row in session.query_typed(sql, &parameters).await? {
        let Some(range) = Lease::new(whole(&row, 3), whole(&row, 4) + 1) else { continue };
        match leases.last_mut() {
            Some(last) if last.id == row.get::<_, Uuid>(0) => last.ranges.push(range),
            _ => leases.push(read(&row, range)?),
        }
    }
    Ok(leases)
}

fn read(row: &Row, range: Lease) -> Result<ClientLease, Failed> {
    Ok(ClientLease {
        id: row.get(0),
        place: place(row.get(1), row.get(2))?,
        ranges: vec![range],
        who: row.get::<_, &str>(5).into(),
        at: Timestamp::from_millisecond(row.get(6)).unwrap_or(Timestamp::MAX),
    })
}

fn place(series: &str, scope: &str) -> Result<Place, Failed> {
    let unknown = |_| StoreError::UnknownSeries(series.into());
    Ok(Place { series: series.parse().map_err(unknown)?, scope: ScopeKey::from_store(scope) })
}
