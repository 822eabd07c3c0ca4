//! Recalls in the shared store: the epochs of series, and who still holds ranges that were granted before one.
//!
//! Invariant: a lease carries the epoch that its series had while the batch that granted it was under way. A recall waits
//! for all batches that are under way, so no lease of an earlier epoch appears after it.

use std::collections::BTreeMap;
use std::time::Duration;

use bates_core::{Holder, Lease, Missing, Place, Ranges, Reason, Recall, ScopeKey, SeriesName, StoreError};
use parking_lot::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::batch::sql::{self, integer, whole};
use crate::error::Failed;
use crate::node;
use crate::session::Session;

/// Scopes whose ranges are reported in one transaction.
const SCOPES_MAX: usize = 1_000;

/// Ranges that are told of a holder.
const RANGES_TOLD: i64 = 5;

/// The recalls that this node knows of.
#[derive(Default)]
pub(crate) struct Recalls(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The recalls up to this epoch were read.
    read_to: i64,
    unanswered: BTreeMap<SeriesName, u64>,
}

impl Recalls {
    /// A node that begins holds nothing: what was recalled before does not concern it.
    pub(crate) fn begin(&self, epoch: i64) {
        self.0.lock().read_to = epoch;
    }

    /// Whether those up to this epoch were read.
    pub(crate) fn are_read_to(&self, epoch: i64) -> bool {
        self.0.lock().read_to >= epoch
    }

    pub(crate) fn unanswered(&self) -> Vec<Recall> {
        let known = self.0.lock();
        known
            .unanswered
            .iter()
            .map(|(series, epoch)| Recall { series: series.clone(), epoch: *epoch })
            .collect()
    }

    fn add(&self, epoch: i64, found: Vec<(SeriesName, u64)>) {
        let mut known = self.0.lock();
        known.read_to = known.read_to.max(epoch);
        for (series, epoch) in found {
            let unanswered = known.unanswered.entry(series).or_default();
            *unanswered = epoch.max(*unanswered);
        }
    }

    pub(crate) fn answered(&self, series: &SeriesName, epoch: u64) {
        let mut known = self.0.lock();
        if known.unanswered.get(series) == Some(&epoch) {
            known.unanswered.remove(series);
        }
    }
}

/// Reads the recalls that a node has not read, up to an epoch and whatever came since.
pub(crate) async fn read(session: &Session, recalls: &Recalls, epoch: i64) -> Result<(), Failed> {
    let sql = "SELECT epoch, name FROM bates.series WHERE epoch > $1";
    let read_to = recalls.0.lock().read_to;
    let rows = session.query_typed(sql, &[(&read_to, Type::INT8)]).await?;
    let found = rows.iter().filter_map(|row| Some((row.get::<_, &str>(1).parse().ok()?, whole(row, 0))));
    recalls.add(epoch, found.collect());
    Ok(())
}

/// Raises the epoch of a series, once no batch is under way that has not seen it.
pub(crate) async fn recall(session: &Session, series: &SeriesName) -> Result<u64, Failed> {
    session.begin().await?;
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    let sql = "WITH counted AS (UPDATE bates.store SET floors = floors + 1 RETURNING floors)
               UPDATE bates.series SET epoch = counted.floors FROM counted WHERE name = $1 RETURNING epoch";
    let rows = session.query_typed(sql, &[(&series.as_str(), Type::TEXT)]).await?;
    let epoch = rows.first().map(|row| whole(row, 0));
    let epoch = epoch.ok_or_else(|| StoreError::UnknownSeries(series.as_str().into()))?;
    session.batch_execute("COMMIT").await?;
    Ok(epoch)
}

/// Writes down what a node gave up. Only what it was granted is lost: in a database that was taken back, the same
/// positions may be others' by now.
pub(crate) async fn give_up(
    session: &Session,
    node: Uuid,
    (series, epoch): (&SeriesName, Option<u64>),
    unused: &[(ScopeKey, Lease)],
) -> Result<(), Failed> {
    let mut scopes: BTreeMap<&ScopeKey, Vec<Lease>> = BTreeMap::new();
    for (scope, range) in unused {
        scopes.entry(scope).or_default().push(*range);
    }
    let scopes: Vec<(&ScopeKey, Vec<Lease>)> = scopes.into_iter().collect();
    for page in scopes.chunks(SCOPES_MAX) {
        session.begin().await?;
        lose(session, node, series, page).await?;
        session.batch_execute("COMMIT").await?;
    }
    if let Some(epoch) = epoch {
        // What is left of them was handed out.
        let sql = "DELETE FROM bates.lease WHERE series = $1 AND node = $2 AND epoch < $3";
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&series.as_str(), Type::TEXT), (&node, Type::UUID), (&bounded(epoch), Type::INT8)];
        session.begin().await?;
        session.query_typed(sql, &parameters).await?;
        session.batch_execute("COMMIT").await?;
    }
    Ok(())
}

/// A node holds nothing any more.
pub(crate) async fn leave(session: &Session, node: Uuid) -> Result<(), Failed> {
    session.begin().await?;
    session.query_typed("DELETE FROM bates.lease WHERE node = $1", &[(&node, Type::UUID)]).await?;
    Ok(session.batch_execute("COMMIT").await?)
}

/// Takes ranges of a node out of its leases and writes them down as lost. Parts of a lease that lie outside stay.
async fn lose(
    session: &Session,
    node: Uuid,
    series: &SeriesName,
    page: &[(&ScopeKey, Vec<Lease>)],
) -> Result<(), Failed> {
    let sql = "DELETE FROM bates.lease WHERE series = $1 AND node = $2 AND scope = ANY ($3)
               RETURNING scope, first, last, batch, epoch";
    let keys: Vec<&str> = page.iter().map(|(scope, _)| scope.as_str()).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&series.as_str(), Type::TEXT), (&node, Type::UUID), (&keys, Type::TEXT_ARRAY)];
    let given: BTreeMap<&str, Ranges> =
        page.iter().map(|(scope, ranges)| (scope.as_str(), Ranges::of(ranges.iter().copied()))).collect();
    let (mut lost, mut left) = (Vec::new(), Vec::new());
    for row in session.query_typed(sql, &parameters).await? {
        let scope = row.get::<_, &str>(0);
        let (Some(given), Some(lease)) = (given.get(scope), Lease::new(whole(&row, 1), whole(&row, 2) + 1))
        else {
            continue;
        };
        let place = Place { series: series.clone(), scope: ScopeKey::from_store(scope) };
        let lease = Ranges::of([lease]);
        let kept = lease.without(given);
        let gone = lease.without(&kept);
        let gone = Missing::all(gone.iter(), Reason::LeaseLost);
        lost.extend(gone.map(|missing| (place.clone(), missing)));
        let (batch, epoch): (Uuid, i64) = (row.get(3), row.get(4));
        left.extend(kept.iter().map(|range| (place.scope.clone(), range, batch, epoch)));
    }
    let lost: Vec<(&Place, Missing)> = lost.iter().map(|(place, missing)| (place, *missing)).collect();
    sql::write_lost(session, &lost).await?;
    put_back(session, node, series, &left).await
}

/// Parts of leases that were not given up.
async fn put_back(
    session: &Session,
    node: Uuid,
    series: &SeriesName,
    left: &[(ScopeKey, Lease, Uuid, i64)],
) -> Result<(), Failed> {
    if left.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO bates.lease (series, node, scope, first, last, batch, epoch)
               SELECT $1, $2, * FROM UNNEST($3, $4, $5, $6, $7)";
    let scopes: Vec<&str> = left.iter().map(|part| part.0.as_str()).collect();
    let firsts: Vec<i64> = left.iter().map(|part| integer(part.1.from())).collect();
    let lasts: Vec<i64> = left.iter().map(|part| integer(part.1.to() - 1)).collect();
    let (batches, epochs): (Vec<Uuid>, Vec<i64>) = left.iter().map(|part| (part.2, part.3)).unzip();
    let parameters: [(&(dyn ToSql + Sync), Type); 7] = [
        (&series.as_str(), Type::TEXT),
        (&node, Type::UUID),
        (&scopes, Type::TEXT_ARRAY),
        (&firsts, Type::INT8_ARRAY),
        (&lasts, Type::INT8_ARRAY),
        (&batches, Type::UUID_ARRAY),
        (&epochs, Type::INT8_ARRAY),
    ];
    session.query_typed(sql, &parameters).await?;
    Ok(())
}

/// The nodes that hold ranges of a series granted before an epoch.
pub(crate) async fn holders(
    session: &Session,
    series: &SeriesName,
    epoch: u64,
) -> Result<Vec<Holder>, Failed> {
    let sql = "SELECT sum(last - first + 1)::bigint, lease.node, coalesce(nodes.host, 'a node without a name'),
                   (SELECT process FROM bates.node WHERE id = lease.node),
                   coalesce(extract(epoch FROM now() - nodes.seen_at), 0)::bigint,
                   (array_agg(scope ORDER BY scope, first))[1:$3],
                   (array_agg(first ORDER BY scope, first))[1:$3],
                   (array_agg(last ORDER BY scope, first))[1:$3]
               FROM bates.lease LEFT JOIN bates.nodes ON nodes.id = lease.node
               WHERE series = $1 AND epoch < $2 GROUP BY lease.node, nodes.host, nodes.seen_at ORDER BY lease.node";
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&series.as_str(), Type::TEXT), (&bounded(epoch), Type::INT8), (&RANGES_TOLD, Type::INT8)];
    let rows = session.query_typed(sql, &parameters).await?;
    Ok(rows.iter().map(holder).collect())
}

fn holder(row: &Row) -> Holder {
    let (scopes, firsts, lasts): (Vec<&str>, Vec<i64>, Vec<i64>) = (row.get(5), row.get(6), row.get(7));
    let ranges =
        scopes.into_iter().zip(firsts.into_iter().zip(lasts)).filter_map(|(scope, (first, last))| {
            let range = Lease::new(u64::try_from(first).ok()?, u64::try_from(last).ok()? + 1)?;
            Some((ScopeKey::from_store(scope), range))
        });
    Holder {
        node: row.get(1),
        name: row.get::<_, &str>(2).into(),
        silent_for: Duration::from_secs(u64::try_from(row.get::<_, i64>(4)).unwrap_or(0)),
        has_ended: node::has_ended(row.get(3)),
        positions: whole(row, 0),
        ranges: ranges.collect(),
    }
}

/// Counts nodes as crashed. Their cursors get another version, so that none of them gives back what is uncertain now.
pub(crate) async fn write_off(
    session: &Session,
    series: &SeriesName,
    epoch: u64,
    nodes: &[Uuid],
) -> Result<(), Failed> {
    // Cursors are locked first and in their order, as in every batch.
    let lock = "SELECT count(*) FROM (SELECT FROM bates.cursor WHERE series = $1 AND scope IN
                    (SELECT scope FROM bates.lease WHERE series = $1 AND epoch < $2 AND node = ANY ($3))
                ORDER BY scope FOR UPDATE) AS locked";
    let raise = "UPDATE bates.cursor SET version = version + 1 WHERE series = $1 AND scope IN
                     (SELECT scope FROM bates.lease WHERE series = $1 AND epoch < $2 AND node = ANY ($3))";
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&series.as_str(), Type::TEXT), (&bounded(epoch), Type::INT8), (&nodes, Type::UUID_ARRAY)];
    session.begin().await?;
    session.query_typed(lock, &parameters).await?;
    session.query_typed(raise, &parameters).await?;
    let gone = "DELETE FROM bates.lease WHERE series = $1 AND epoch < $2 AND node = ANY ($3)";
    crate::batch::lose::lose_leases(session, gone, &parameters).await?;
    Ok(session.batch_execute("COMMIT").await?)
}

/// Counts nodes that are silent for too long as crashed: what they hold of a series is uncertain from now on. Their cursors
/// get another version, so that a node that comes back does not give back what was reported.
pub(crate) async fn count_crashed(session: &Session, series: &SeriesName) -> Result<(), Failed> {
    const SILENT: &str = "lease.series = $1 AND lease.crashed_at IS NULL AND NOT EXISTS (
        SELECT FROM bates.nodes WHERE nodes.id = lease.node AND nodes.seen_at > now() - $2 * interval '1 second')";
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&series.as_str(), Type::TEXT), (&node::CRASHED_AFTER_SECONDS, Type::FLOAT8)];
    let found =
        session.query_typed(&format!("SELECT FROM bates.lease WHERE {SILENT} LIMIT 1"), &parameters).await?;
    if found.is_empty() {
        return Ok(());
    }
    let scopes = format!("scope IN (SELECT scope FROM bates.lease WHERE {SILENT})");
    let lock = format!(
        "SELECT count(*) FROM
             (SELECT FROM bates.cursor WHERE series = $1 AND {scopes} ORDER BY scope FOR UPDATE) AS locked"
    );
    let raise = format!("UPDATE bates.cursor SET version = version + 1 WHERE series = $1 AND {scopes}");
    session.begin().await?;
    session.query_typed(&lock, &parameters).await?;
    session.query_typed(&raise, &parameters).await?;
    session
        .query_typed(&format!("UPDATE bates.lease SET crashed_at = now() WHERE {SILENT}"), &parameters)
        .await?;
    Ok(session.batch_execute("COMMIT").await?)
}

/// An epoch as a column holds it; one past all means every lease.
fn bounded(epoch: u64) -> i64 {
    i64::try_from(epoch).unwrap_or(i64::MAX)
}
