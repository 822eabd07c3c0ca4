//! The store itself: a node with its connections, behind the port of the core.

use std::sync::Arc;

use bates_core::ledger::{Outcome, Request};
use bates_core::{
    COUNTED_SCOPES_MAX, Definition, DescriptionChange, Holder, NodeStore, Operation, PinOutcome,
    PositionRange, Promise, PromiseChange, Recall, ScopeId, ScopeKey, SeriesName, SeriesStore, StoreError,
    StoreResult, StoreTotals,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::audit::Recorder;
use crate::batch::Shared;
use crate::batch::sql::{get_u64, to_i64};
use crate::error::Failure;
use crate::node::{self, Process};
use crate::notice::Notices;
use crate::parameter::Parameter;
use crate::recall::{self, Recalls};
use crate::session::{Session, with_session};
use crate::{cluster, holding, lineage, operation, read, write};

pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
    pub(crate) notices: Notices,
    pub(crate) recorder: Recorder,
    pub(crate) process: Process,
    pub(crate) recalls: Recalls,
    pub(crate) identity: Uuid,
}

impl PostgresStore {
    /// Lets all nodes continue with a restored database as it is. Returns its timeline.
    pub async fn accept(&self, operation: Option<Operation>) -> StoreResult<i64> {
        let operation = operation.as_ref();
        self.with_session(|session| async move {
            cluster::pin(&session).await?;
            lineage::accept(&session, operation).await
        })
        .await
    }

    pub(crate) fn node(&self) -> Uuid {
        self.shared.lineage.node
    }

    /// Fails if the store must not issue numbers now.
    pub(crate) async fn check_may_issue(&self, session: &Session) -> Result<(), Failure> {
        self.shared.lineage.check(session).await.map(drop)
    }

    /// Decides a request of an operator. Deciding it twice is safe: a raised cursor and adopted positions stay so.
    pub(crate) async fn operate(&self, scope_id: ScopeId, request: Request) -> StoreResult<Outcome> {
        let (scope_id, request) = (&scope_id, &request);
        self.with_session(|session| async move { write::operate(&session, scope_id, request).await }).await
    }

    /// Runs one statement that only reads.
    pub(crate) async fn query(&self, sql: &str, parameters: &[&dyn Parameter]) -> StoreResult<Vec<Row>> {
        self.with_session(|session| async move { Ok(session.query(sql, parameters).await?) }).await
    }

    pub(crate) async fn with_session<T, F>(&self, work: impl Fn(Arc<Session>) -> F) -> StoreResult<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let Shared { pool, settings, .. } = &*self.shared;
        with_session(pool, *settings, work).await.map_err(Failure::into_store_error)
    }
}

impl SeriesStore for PostgresStore {
    fn identity(&self) -> Uuid {
        self.identity
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn totals(&self) -> StoreResult<StoreTotals> {
        let sql = "SELECT count(*), coalesce(sum(scopes), 0)::bigint FROM bates.series";
        let rows = self.query(sql, &[]).await?;
        let count = |column| rows.first().map_or(0, |row| get_u64(row, column));
        let (series, scopes) = (count(0), count(1));
        if scopes > COUNTED_SCOPES_MAX {
            return Ok(StoreTotals { series, scopes, granted: None });
        }
        let sql = "SELECT coalesce(sum(next - start), 0)::bigint FROM bates.cursor JOIN bates.series ON name = series";
        let rows = self.query(sql, &[]).await?;
        Ok(StoreTotals { series, scopes, granted: rows.first().map(|row| get_u64(row, 0)) })
    }

    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> StoreResult<PinOutcome> {
        let (definition, key) = (&definition, fresh_key.as_deref());
        self.with_session(|session| async move { write::pin(&session, definition, key).await }).await
    }

    async fn definition(&self, series: SeriesName) -> StoreResult<Option<Definition>> {
        let series = &series;
        let pinned = self.with_session(|session| async move { Ok(read::pinned(&session, series).await?) });
        Ok(pinned.await?.map(|(definition, _)| definition))
    }

    async fn describe(
        &self,
        series: SeriesName,
        change: DescriptionChange,
        operation: Option<Operation>,
    ) -> StoreResult<bool> {
        let (series, change, operation) = (&series, &change, operation.as_ref());
        self.with_session(|session| async move {
            let describe = async {
                let fits = write::describe(&session, series, change).await?;
                operation::append(&session, operation.filter(|_| fits)).await?;
                Ok(fits)
            };
            session.transact(describe).await
        })
        .await
    }

    async fn descriptions(&self) -> StoreResult<Vec<(SeriesName, Box<str>)>> {
        let sql = "SELECT name, description FROM bates.series WHERE description IS NOT NULL ORDER BY name";
        let read = |row: &Row| {
            let name = row.get::<_, &str>(0).parse().expect("Bates writes only valid series names");
            (name, row.get::<_, &str>(1).into())
        };
        Ok(self.query(sql, &[]).await?.iter().map(read).collect())
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        change: PromiseChange,
        described: Option<DescriptionChange>,
        operation: Option<Operation>,
    ) -> StoreResult<bool> {
        let (series, described, operation) = (&series, described.as_ref(), operation.as_ref());
        self.with_session(|session| async move {
            let change = async {
                let is_changed = write::change_promise(&session, series, change, described).await?;
                operation::append(&session, operation.filter(|_| is_changed)).await?;
                Ok(is_changed)
            };
            session.transact(change).await
        })
        .await
    }

    async fn promises(&self) -> StoreResult<Vec<(SeriesName, Promise)>> {
        let sql = "SELECT name, promise FROM bates.series WHERE promise IS NOT NULL";
        let read =
            |row: &Row| Some((row.get::<_, &str>(0).parse().ok()?, row.get::<_, &str>(1).parse().ok()?));
        Ok(self.query(sql, &[]).await?.iter().filter_map(read).collect())
    }

    async fn series_floors(&self) -> StoreResult<Vec<(SeriesName, u64)>> {
        let sql = "SELECT name, floor FROM bates.series WHERE floor > 0 ORDER BY name";
        let rows = self.query(sql, &[]).await?;
        let name = |row: &Row| row.get::<_, &str>(0).parse().expect("Bates writes only valid series names");
        Ok(rows.iter().map(|row| (name(row), get_u64(row, 1))).collect())
    }

    async fn raise_series_floor(&self, series: SeriesName, floor: u64) -> StoreResult<()> {
        let sql = "UPDATE bates.series SET floor = greatest(floor, $2) WHERE name = $1 RETURNING true";
        let raised = self.query(sql, &[&series.as_str(), &to_i64(floor)]).await?;
        if raised.is_empty() { Err(StoreError::UnknownSeries(series.as_str().into())) } else { Ok(()) }
    }

    async fn check_revision(&self) -> StoreResult<u64> {
        let accepted_at = self.shared.lineage.accepted_at();
        let revision =
            self.with_session(|session| async move { self.shared.lineage.check(&session).await }).await;
        if let Err(StoreError::Poisoned(reason)) = &revision {
            self.shared.stop_other_nodes(reason, accepted_at).await;
        }
        revision
    }

    fn era(&self) -> u64 {
        self.shared.lineage.era()
    }

    async fn probe(&self) -> StoreResult<()> {
        self.check_revision().await?;
        let node = self.node();
        self.with_session(|session| async move { node::record_contact(&session, node, &self.process).await })
            .await
    }
}

impl NodeStore for PostgresStore {
    async fn recall(&self, series: SeriesName) -> StoreResult<u64> {
        let series = &series;
        self.with_session(|session| async move { recall::recall(&session, series).await }).await
    }

    async fn recalls(&self) -> StoreResult<Vec<Recall>> {
        let (recalls, seen) = (&self.recalls, self.shared.lineage.last_recall());
        if !recalls.are_read_to(seen) {
            self.with_session(|session| async move { recall::read(&session, recalls, seen).await }).await?;
        }
        Ok(recalls.unanswered())
    }

    async fn give_up(
        &self,
        series: SeriesName,
        epoch: Option<u64>,
        unused: Vec<(ScopeKey, PositionRange)>,
    ) -> StoreResult<()> {
        let (series, unused, node) = (&series, &*unused, self.node());
        self.with_session(
            |session| async move { holding::give_up(&session, node, series, epoch, unused).await },
        )
        .await?;
        if let Some(epoch) = epoch {
            self.recalls.mark_answered(series, epoch);
        }
        Ok(())
    }

    async fn leave(&self) -> StoreResult<()> {
        let node = self.node();
        self.with_session(|session| async move { recall::leave(&session, node).await }).await
    }

    async fn holders(&self, series: SeriesName, epoch: u64) -> StoreResult<Vec<Holder>> {
        let series = &series;
        self.with_session(|session| async move { recall::holders(&session, series, epoch).await }).await
    }

    async fn write_off(
        &self,
        series: SeriesName,
        epoch: u64,
        nodes: Vec<Uuid>,
        operation: Option<Operation>,
    ) -> StoreResult<()> {
        let (series, nodes, operation) = (&series, &*nodes, operation.as_ref());
        self.with_session(|session| async move {
            recall::write_off(&session, series, epoch, nodes, operation).await
        })
        .await
    }
}
