//! Recalls in the shared store: the epochs of series, and the nodes that still hold ranges of earlier epochs.
//!
//! Invariant: a held range carries the epoch that its series had while the batch that granted it was under way. A recall
//! waits for all batches that are under way, so no range of an earlier epoch appears after it.

use std::collections::BTreeMap;
use std::time::Duration;

use bates_core::{Holder, Operation, PositionRange, Recall, ScopeKey, SeriesName, StoreError};
use parking_lot::Mutex;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::batch::sql::get_u64;
use crate::error::Failure;
use crate::session::Session;
use crate::{holding, node, operation};

/// Max ranges of a holder that a command lists.
const RANGES_SHOWN_MAX: i64 = 5;

#[derive(Default)]
pub(crate) struct Recalls(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// This node has read the recalls up to this epoch.
    read_to: i64,
    unanswered: BTreeMap<SeriesName, u64>,
}

impl Recalls {
    /// A new node holds no ranges, so recalls up to this epoch do not concern it.
    pub(crate) fn begin(&self, epoch: i64) {
        self.0.lock().read_to = epoch;
    }

    pub(crate) fn are_read_to(&self, epoch: i64) -> bool {
        self.0.lock().read_to >= epoch
    }

    pub(crate) fn unanswered(&self) -> Vec<Recall> {
        let unanswered = &self.0.lock().unanswered;
        unanswered.iter().map(|(series, epoch)| Recall { series: series.clone(), epoch: *epoch }).collect()
    }

    fn add(&self, epoch: i64, recalls: Vec<(SeriesName, u64)>) {
        let mut known = self.0.lock();
        known.read_to = known.read_to.max(epoch);
        for (series, epoch) in recalls {
            let unanswered = known.unanswered.entry(series).or_default();
            *unanswered = epoch.max(*unanswered);
        }
    }

    pub(crate) fn mark_answered(&self, series: &SeriesName, epoch: u64) {
        let mut known = self.0.lock();
        if known.unanswered.get(series) == Some(&epoch) {
            known.unanswered.remove(series);
        }
    }
}

/// Reads the recalls that this node has not read yet, at least up to an epoch.
pub(crate) async fn read(session: &Session, recalls: &Recalls, epoch: i64) -> Result<(), Failure> {
    let sql = "SELECT epoch, name FROM bates.series WHERE epoch > $1";
    let read_to = recalls.0.lock().read_to;
    let rows = session.query(sql, &[&read_to]).await?;
    let unread = rows.iter().filter_map(|row| Some((row.get::<_, &str>(1).parse().ok()?, get_u64(row, 0))));
    recalls.add(epoch, unread.collect());
    Ok(())
}

/// Raises the epoch of a series, once all batches that have not seen it are done.
pub(crate) async fn recall(session: &Session, series: &SeriesName) -> Result<u64, Failure> {
    session.begin().await?;
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    let sql = "WITH counted AS (UPDATE bates.store SET recalls = recalls + 1 RETURNING recalls)
               UPDATE bates.series SET epoch = counted.recalls FROM counted WHERE name = $1 RETURNING epoch";
    let rows = session.query(sql, &[&series.as_str()]).await?;
    let epoch = rows.first().map(|row| get_u64(row, 0));
    let epoch = epoch.ok_or_else(|| StoreError::UnknownSeries(series.as_str().into()))?;
    session.commit().await?;
    Ok(epoch)
}

/// Called at a clean stop, when the node holds nothing any more.
pub(crate) async fn leave(session: &Session, node: Uuid) -> Result<(), Failure> {
    session.query_once("DELETE FROM bates.held_range WHERE node = $1", &[&node]).await.map(drop)
}

pub(crate) async fn holders(
    session: &Session,
    series: &SeriesName,
    epoch: u64,
) -> Result<Vec<Holder>, Failure> {
    let sql = "SELECT sum(last - first + 1)::bigint, held.node, coalesce(nodes.host, 'a node without a name'),
                   (SELECT process FROM bates.node WHERE id = held.node),
                   coalesce(extract(epoch FROM now() - nodes.seen_at), 0)::bigint,
                   (array_agg(scope ORDER BY scope, first))[1:$3],
                   (array_agg(first ORDER BY scope, first))[1:$3],
                   (array_agg(last ORDER BY scope, first))[1:$3]
               FROM bates.held_range AS held LEFT JOIN bates.nodes ON nodes.id = held.node
               WHERE series = $1 AND epoch < $2 GROUP BY held.node, nodes.host, nodes.seen_at ORDER BY held.node";
    let rows = session.query(sql, &[&series.as_str(), &epoch_column(epoch), &RANGES_SHOWN_MAX]).await?;
    Ok(rows.iter().map(holder).collect())
}

fn holder(row: &Row) -> Holder {
    let (scopes, firsts, lasts): (Vec<&str>, Vec<i64>, Vec<i64>) = (row.get(5), row.get(6), row.get(7));
    let ranges =
        scopes.into_iter().zip(firsts.into_iter().zip(lasts)).filter_map(|(scope, (first, last))| {
            let range = PositionRange::new(u64::try_from(first).ok()?, u64::try_from(last).ok()? + 1)?;
            Some((ScopeKey::from_store(scope), range))
        });
    Holder {
        node: row.get(1),
        name: row.get::<_, &str>(2).into(),
        silent_for: Duration::from_secs(u64::try_from(row.get::<_, i64>(4)).unwrap_or(0)),
        has_ended: node::has_ended(row.get(3)),
        positions: get_u64(row, 0),
        ranges: ranges.collect(),
    }
}

pub(crate) async fn write_off(
    session: &Session,
    series: &SeriesName,
    epoch: u64,
    nodes: &[Uuid],
    operation: Option<&Operation>,
) -> Result<(), Failure> {
    let condition = "held.series = $1 AND held.epoch < $2 AND held.node = ANY ($3)";
    let (series, epoch) = (series.as_str(), epoch_column(epoch));
    let write_off = async {
        holding::write_off(session, condition, &[&series, &epoch, &nodes]).await?;
        operation::append(session, operation).await
    };
    session.transact(write_off).await
}

/// An epoch as a column holds it. `u64::MAX` selects all held ranges.
pub(crate) fn epoch_column(epoch: u64) -> i64 {
    i64::try_from(epoch).unwrap_or(i64::MAX)
}
