//! The store itself: a node with its connections, behind the port of the core.

use std::sync::Arc;

use bates_core::ledger::{Outcome, Request};
use bates_core::{
    Cursor, CursorStore, Definition, DescriptionChange, GapReason, Grant, GrantError, GrantRequest, Holder,
    MissingRange, NodeStore, Operation, PinOutcome, Position, PositionRange, Promise, PromiseChange,
    RangeSet, Recall, ReleaseOutcome, ReleaseRequest, ScopeId, ScopeKey, SeriesName, SeriesStore, StoreError,
    StoreResult,
};
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::audit::Recorder;
use crate::batch::{Shared, sql};
use crate::error::Failure;
use crate::node::{self, Process};
use crate::notice::Notices;
use crate::outbox::to_limit;
use crate::parameter::Parameter;
use crate::recall::{self, Recalls};
use crate::session::{Session, with_session};
use crate::{cluster, holding, lineage, operation, read, write};

/// Max releases that wait in the queue at once.
const RELEASES_MAX: usize = 1_024;

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
    async fn operate(&self, scope_id: ScopeId, request: Request) -> StoreResult<Outcome> {
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

    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> StoreResult<PinOutcome> {
        let (definition, key) = (&definition, fresh_key.as_deref());
        self.with_session(|session| async move { write::pin(&session, definition, key).await }).await
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

impl CursorStore for PostgresStore {
    async fn grant(&self, request: GrantRequest) -> Result<Grant, GrantError> {
        self.shared.submit(request.scope_id.clone(), Request::Grant(request)).await?.into_grant()
    }

    async fn release(&self, release: ReleaseRequest) -> StoreResult<ReleaseOutcome> {
        self.shared.submit(release.scope_id.clone(), Request::Release(release)).await?.into_release()
    }

    async fn release_all(&self, releases: Vec<ReleaseRequest>) -> Vec<StoreResult<ReleaseOutcome>> {
        // The queue makes batches of them.
        let releases = releases.into_iter().map(|release| self.release(release));
        stream::iter(releases).buffered(RELEASES_MAX).collect().await
    }

    async fn cursor(&self, scope_id: ScopeId) -> StoreResult<Option<Cursor>> {
        let sql = "SELECT next, version FROM bates.cursor WHERE series = $1 AND scope = $2";
        let rows = self.query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
        Ok(rows.first().map(read_cursor))
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Cursor)>> {
        let sql = "SELECT next, version, scope FROM bates.cursor
                   WHERE series = $1 AND ($2 OR scope > $3) ORDER BY scope LIMIT $4";
        let (is_first, after) = (after.is_none(), after.as_ref().map_or("", ScopeKey::as_str));
        let rows = self.query(sql, &[&series.as_str(), &is_first, &after, &to_limit(limit)]).await?;
        Ok(rows.iter().map(|row| (ScopeKey::from_store(row.get(2)), read_cursor(row))).collect())
    }

    async fn issued_ranges(&self, scope_id: ScopeId) -> StoreResult<Vec<PositionRange>> {
        let sql = "SELECT first, last FROM bates.ledger WHERE series = $1 AND scope = $2";
        let rows = self.query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
        Ok(RangeSet::of(rows.iter().filter_map(|row| sql::range(row, 0))).iter().collect())
    }

    async fn burn(&self, burned: Vec<(ScopeId, PositionRange)>) -> StoreResult<()> {
        let missing = |range| MissingRange { range, reason: GapReason::Burned };
        let ranges: Vec<_> = burned.iter().map(|(scope_id, range)| (scope_id, missing(*range))).collect();
        let ranges = &*ranges;
        self.with_session(|session| async move {
            session.begin().await?;
            // In a restored database, another node may hold the same positions.
            self.check_may_issue(&session).await?;
            sql::write_lost(&session, ranges).await?;
            session.commit().await
        })
        .await
    }

    async fn raise_floor(
        &self,
        scope_id: ScopeId,
        floor: u64,
        operation: Option<Operation>,
    ) -> StoreResult<Cursor> {
        self.operate(scope_id, Request::RaiseFloor(floor, operation.map(Box::new))).await?.into_floor()
    }

    async fn adopt_positions(
        &self,
        scope_id: ScopeId,
        positions: Vec<Position>,
        operation: Option<Operation>,
    ) -> StoreResult<u64> {
        self.operate(scope_id, Request::Adopt(positions, operation.map(Box::new))).await?.into_adopted()
    }

    async fn adopted_positions(
        &self,
        scope_id: ScopeId,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<Position>> {
        let scope_id = &scope_id;
        self.with_session(|session| async move { Ok(read::adopted(&session, scope_id, from, limit).await?) })
            .await
    }
}

fn read_cursor(row: &Row) -> Cursor {
    Cursor { next: sql::get_u64(row, 0), version: sql::get_u64(row, 1) }
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
