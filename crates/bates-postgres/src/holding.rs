//! Positions that nodes give up or lose: loaded by scope, decided by the ledger, and written.

use std::collections::BTreeMap;

use bates_core::ledger::{BatchState, Decision, Outcome, Request, ScopeBefore, ScopeChange, decide};
use bates_core::{Cursor, MissingRange, PositionRange, RangeSet, ScopeId, ScopeKey, SeriesName};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::batch::sql;
use crate::error::Failure;
use crate::node;
use crate::parameter::Parameter;
use crate::recall::epoch_column;
use crate::session::Session;

const SCOPES_MAX: usize = 1_000;

struct HeldScope {
    scope_id: ScopeId,
    before: ScopeBefore,
    request: Request,
}

struct HeldRow {
    scope: ScopeKey,
    range: PositionRange,
    batch: Uuid,
    epoch: i64,
}

/// Records held ranges as uncertain, as if their nodes had crashed. Positions that a client lease holds within them stay
/// with the client. The condition names columns of `bates.held_range AS held`.
pub(crate) async fn write_off(
    session: &Session,
    condition: &str,
    parameters: &[&dyn Parameter],
) -> Result<(), Failure> {
    let cursors = lock_cursors(session, condition, parameters).await?;
    let delete = format!(
        "WITH deleted AS (DELETE FROM bates.held_range AS held WHERE {condition} RETURNING series, scope, first, last)
         SELECT series, scope, first, last, true FROM deleted
         UNION ALL
         SELECT series, scope, first, last, false FROM bates.lost WHERE EXISTS (
             SELECT FROM deleted WHERE deleted.series = lost.series AND deleted.scope = lost.scope
             AND lost.first <= deleted.last AND lost.last >= deleted.first)
         UNION ALL
         SELECT series, scope, first, last, false FROM bates.client_lease WHERE EXISTS (
             SELECT FROM deleted WHERE deleted.series = client_lease.series AND deleted.scope = client_lease.scope
             AND client_lease.first <= deleted.last AND client_lease.last >= deleted.first)"
    );
    let mut ranges: BTreeMap<ScopeId, [Vec<PositionRange>; 2]> = BTreeMap::new();
    for row in session.query(&delete, parameters).await? {
        let Some(scope_id) = sql::scope_id(&row, 0) else { continue };
        let [held, elsewhere] = ranges.entry(scope_id).or_default();
        let range = sql::range(&row, 2);
        if row.get(4) { held.extend(range) } else { elsewhere.extend(range) }
    }
    let mut cursors: BTreeMap<ScopeId, Cursor> = cursors.into_iter().collect();
    let scopes = ranges.into_iter().map(|(scope_id, [held, elsewhere])| {
        let held = RangeSet::of(held).difference(&RangeSet::of(elsewhere));
        let before = ScopeBefore { cursor: cursors.remove(&scope_id), held, ..ScopeBefore::default() };
        HeldScope { scope_id, before, request: Request::WriteOff }
    });
    decide_all(session, &scopes.collect::<Vec<_>>()).await.map(drop)
}

/// Marks the ranges of nodes that were silent for too long as crashed: these nodes can no longer release them.
pub(crate) async fn mark_crashed(session: &Session, series: &SeriesName) -> Result<(), Failure> {
    const SILENT: &str = "held.series = $1 AND held.crashed_at IS NULL AND NOT EXISTS (
        SELECT FROM bates.nodes WHERE nodes.id = held.node AND nodes.seen_at > now() - $2 * interval '1 second')";
    let name = series.as_str();
    let parameters: [&dyn Parameter; 2] = [&name, &node::CRASHED_AFTER_SECONDS];
    let any = format!("SELECT FROM bates.held_range AS held WHERE {SILENT} LIMIT 1");
    if session.query(&any, &parameters).await?.is_empty() {
        return Ok(());
    }
    session.begin().await?;
    let scopes = lock_cursors(session, SILENT, &parameters).await?.into_iter().map(|(scope_id, cursor)| {
        let before = ScopeBefore { cursor: Some(cursor), ..ScopeBefore::default() };
        HeldScope { scope_id, before, request: Request::Fence }
    });
    decide_all(session, &scopes.collect::<Vec<_>>()).await?;
    let mark = format!("UPDATE bates.held_range AS held SET crashed_at = now() WHERE {SILENT}");
    session.query(&mark, &parameters).await?;
    session.commit().await
}

/// Records the positions that a node gave up unused. With an epoch, the node has handed out the rest of its earlier ranges.
pub(crate) async fn give_up(
    session: &Session,
    node: Uuid,
    series: &SeriesName,
    epoch: Option<u64>,
    unused: &[(ScopeKey, PositionRange)],
) -> Result<(), Failure> {
    let mut scopes: BTreeMap<&ScopeKey, Vec<PositionRange>> = BTreeMap::new();
    for (scope, range) in unused {
        scopes.entry(scope).or_default().push(*range);
    }
    let scopes: Vec<(&ScopeKey, Vec<PositionRange>)> = scopes.into_iter().collect();
    for page in scopes.chunks(SCOPES_MAX) {
        session.transact(give_up_page(session, node, series, page)).await?;
    }
    let Some(epoch) = epoch else { return Ok(()) };
    let sql = "DELETE FROM bates.held_range WHERE series = $1 AND node = $2 AND epoch < $3";
    session.query_once(sql, &[&series.as_str(), &node, &epoch_column(epoch)]).await.map(drop)
}

async fn give_up_page(
    session: &Session,
    node: Uuid,
    series: &SeriesName,
    page: &[(&ScopeKey, Vec<PositionRange>)],
) -> Result<(), Failure> {
    let sql = "DELETE FROM bates.held_range WHERE series = $1 AND node = $2 AND scope = ANY ($3)
               RETURNING scope, first, last, batch, epoch";
    let keys: Vec<&str> = page.iter().map(|(scope, _)| scope.as_str()).collect();
    let rows = session.query(sql, &[&series.as_str(), &node, &keys]).await?;
    let rows: Vec<HeldRow> = rows.iter().filter_map(held_row).collect();
    let scopes = page.iter().map(|(scope, unused)| {
        let held = rows.iter().filter(|row| row.scope == **scope).map(|row| row.range);
        HeldScope {
            scope_id: ScopeId { series: series.clone(), scope: (*scope).clone() },
            before: ScopeBefore { held: RangeSet::of(held), ..ScopeBefore::default() },
            request: Request::GiveUp(unused.clone()),
        }
    });
    let scopes: Vec<HeldScope> = scopes.collect();
    let changes = decide_all(session, &scopes).await?.into_iter().map(|change| change.given_up);
    let given_up: BTreeMap<&ScopeKey, RangeSet> =
        scopes.iter().map(|scope| &scope.scope_id.scope).zip(changes).collect();
    let kept = rows.iter().flat_map(|row| {
        let kept = RangeSet::of([row.range]).difference(&given_up[&row.scope]);
        kept.iter().map(|range| HeldRow { scope: row.scope.clone(), range, ..*row }).collect::<Vec<_>>()
    });
    insert_held(session, node, series, &kept.collect::<Vec<_>>()).await
}

/// Decides for each scope, and writes the cursors and the missing ranges.
async fn decide_all(session: &Session, scopes: &[HeldScope]) -> Result<Vec<ScopeChange>, Failure> {
    let mut changes = Vec::with_capacity(scopes.len());
    for HeldScope { scope_id, before, request } in scopes {
        let Decision { outcomes, change } = decide(before, scope_id, [request], &mut BatchState::default());
        outcomes.into_iter().try_for_each(Outcome::into_change)?;
        changes.push(change);
    }
    let changed = || scopes.iter().map(|scope| &scope.scope_id).zip(&changes);
    let moved: Vec<_> = changed().filter_map(|(scope_id, change)| Some((scope_id, change.cursor?))).collect();
    let lost: Vec<(&ScopeId, MissingRange)> = changed()
        .flat_map(|(scope_id, change)| change.lost.iter().map(move |lost| (scope_id, *lost)))
        .collect();
    sql::move_cursors(session, &moved).await?;
    sql::write_lost(session, &lost).await?;
    Ok(changes)
}

/// Locks the cursors of the scopes with matching held ranges, in the order that every batch uses.
async fn lock_cursors(
    session: &Session,
    condition: &str,
    parameters: &[&dyn Parameter],
) -> Result<Vec<(ScopeId, Cursor)>, Error> {
    let sql = format!(
        "SELECT DISTINCT series, scope FROM bates.held_range AS held WHERE {condition} ORDER BY 1, 2"
    );
    let rows = session.query(&sql, parameters).await?;
    let scope_ids: Vec<ScopeId> = rows.iter().filter_map(|row| sql::scope_id(row, 0)).collect();
    let locked = sql::lock_cursors(session, &scope_ids.iter().collect::<Vec<_>>()).await?;
    Ok(locked.into_iter().map(|locked| (scope_ids[locked.index].clone(), locked.cursor)).collect())
}

fn held_row(row: &Row) -> Option<HeldRow> {
    let range = sql::range(row, 1)?;
    Some(HeldRow { scope: ScopeKey::from_store(row.get(0)), range, batch: row.get(3), epoch: row.get(4) })
}

async fn insert_held(
    session: &Session,
    node: Uuid,
    series: &SeriesName,
    rows: &[HeldRow],
) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO bates.held_range (series, node, scope, first, last, batch, epoch)
               SELECT $1, $2, * FROM UNNEST($3, $4, $5, $6, $7)";
    let scopes: Vec<&str> = rows.iter().map(|row| row.scope.as_str()).collect();
    let (firsts, lasts) = sql::bounds(rows.iter().map(|row| row.range));
    let (batches, epochs): (Vec<Uuid>, Vec<i64>) = rows.iter().map(|row| (row.batch, row.epoch)).unzip();
    session.query(sql, &[&series.as_str(), &node, &scopes, &firsts, &lasts, &batches, &epochs]).await?;
    Ok(())
}
