//! Rare writes besides grants, one at a time. Each is safe to run twice, so failures are retried.

use bates_core::ledger::{BatchState, Decision, Outcome, Request, ScopeBefore, decide};
use bates_core::{
    Definition, DescriptionChange, PinOutcome, PinnedSeries, Position, Promise, PromiseChange,
    PromiseDecision, ScopeId, SeriesName, StoreError,
};

use crate::batch::sql::{self, to_i64};
use crate::error::Failure;
use crate::moving::lock_unmarked;
use crate::parameter::Parameter;
use crate::session::Session;
use crate::{operation, pool, read};

pub(crate) async fn pin(
    session: &Session,
    requested: &Definition,
    fresh_key: Option<&[u8]>,
) -> Result<PinOutcome, Failure> {
    match read::pinned(session, &requested.series).await? {
        Some((pinned, key)) if pinned.promise.is_some() || requested.promise.is_none() => {
            if let Some(rules) = pinned.rules_to_keep(requested) {
                keep_rules(session, &pinned, rules).await?;
            }
            return compare(requested, (pinned, key), false);
        }
        Some(_) => pin_first_promise(session, requested).await?,
        None => {}
    }
    let insert = async {
        lock_unmarked(session).await?;
        insert(session, requested, fresh_key).await
    };
    let is_new = session.transact(insert).await?;
    let Some(pinned) = read::pinned(session, &requested.series).await? else {
        return Err(Failure::Transient("a series that was inserted is missing".into()));
    };
    compare(requested, pinned, is_new)
}

fn compare(requested: &Definition, pinned: PinnedSeries, is_new: bool) -> Result<PinOutcome, Failure> {
    let (pinned, permutation_key) = pinned;
    match StoreError::for_difference(&pinned, requested) {
        None => Ok(PinOutcome { is_new, ..PinOutcome::of_pinned(&pinned, requested, permutation_key) }),
        Some(refused) => Err(Failure::Permanent(refused)),
    }
}

/// If several nodes change the rules at once, the first writes its own rules, and the others write that they changed.
async fn keep_rules(session: &Session, pinned: &Definition, rules: &str) -> Result<(), Failure> {
    let sql = "UPDATE bates.series SET rules = CASE WHEN rules IS NOT DISTINCT FROM $2 THEN $3 ELSE $4 END WHERE name = $1";
    let parameters: [&dyn Parameter; 4] =
        [&pinned.series.as_str(), &pinned.rules, &rules, &Definition::RULES_CHANGED];
    write_unmarked(session, sql, &parameters).await
}

async fn write_unmarked(session: &Session, sql: &str, parameters: &[&dyn Parameter]) -> Result<(), Failure> {
    session.begin().await?;
    lock_unmarked(session).await?;
    session.query(sql, parameters).await?;
    session.commit().await
}

/// In a store from before promises were pinned, the first node pins it.
async fn pin_first_promise(session: &Session, requested: &Definition) -> Result<(), Failure> {
    let sql = "UPDATE bates.series SET promise = $2 WHERE name = $1 AND promise IS NULL";
    write_unmarked(session, sql, &[&requested.series.as_str(), &requested.promise.map(Promise::name)]).await
}

/// Changes the promise of a series once all batches that have not seen the change are done. Within a transaction.
pub(crate) async fn change_promise(
    session: &Session,
    series: &SeriesName,
    change: PromiseChange,
    described: Option<&DescriptionChange>,
) -> Result<bool, Failure> {
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    lock_unmarked(session).await?;
    let name = series.as_str();
    let rows = session.query("SELECT promise FROM bates.series WHERE name = $1", &[&name]).await?;
    let row = rows.first().ok_or_else(|| StoreError::UnknownSeries(name.into()))?;
    let decision = change.decide(row.get::<_, Option<&str>>(0).and_then(|promise| promise.parse().ok()));
    if decision == PromiseDecision::Refuse {
        return Ok(false);
    }
    if let Some(described) = described
        && !describe(session, series, described).await?
    {
        return Ok(false);
    }
    if decision == PromiseDecision::Keep {
        return Ok(true);
    }
    let sql = "WITH revised AS (UPDATE bates.store SET revision = revision + 1)
               UPDATE bates.series SET promise = $2 WHERE name = $1";
    session.query(sql, &[&name, &change.to.name()]).await?;
    let gapless_from = if change.to == Promise::Gapless { "next" } else { "0" };
    let sql = format!("UPDATE bates.cursor SET gapless_from = {gapless_from} WHERE series = $1");
    session.query(&sql, &[&name]).await?;
    Ok(true)
}

/// Returns whether the series is new. If several nodes insert it at once, it is new for one of them.
pub(crate) async fn insert(
    session: &Session,
    requested: &Definition,
    fresh_key: Option<&[u8]>,
) -> Result<bool, Failure> {
    let sql = "INSERT INTO bates.series
                   (name, template, parameters, shuffled, start, reset, time_zone, construction, permutation_key, promise,
                    rules)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (name) DO NOTHING RETURNING true";
    let (start, version) = (to_i64(requested.start), i32::from(requested.construction));
    let (name, promise) = (requested.series.as_str(), requested.promise.map(Promise::name));
    let Definition { template, parameters, shuffled, reset, time_zone, rules, .. } = requested;
    let parameters: [&dyn Parameter; 11] = [
        &name, template, parameters, shuffled, &start, reset, time_zone, &version, &fresh_key, &promise,
        rules,
    ];
    Ok(!session.query(sql, &parameters).await?.is_empty())
}

/// Decides a request of an operator and writes the change. Takes the same locks as a batch that creates scopes.
pub(crate) async fn operate(
    session: &Session,
    scope_id: &ScopeId,
    request: &Request,
) -> Result<Outcome, Failure> {
    let series = scope_id.series.as_str();
    session.begin().await?;
    lock_unmarked(session).await?;
    let locked = sql::lock_series(session, &[series]).await?;
    let before = ScopeBefore {
        series: locked.first().map(|(_, series)| series.before),
        cursor: sql::lock_cursors(session, &[scope_id]).await?.first().map(|locked| locked.cursor),
        ..ScopeBefore::default()
    };
    let Decision { mut outcomes, change } = decide(&before, scope_id, [request], &mut BatchState::default());
    let lost: Vec<_> = change.lost.iter().map(|missing| (scope_id, *missing)).collect();
    sql::write_lost(session, &lost).await?;
    if let Some(cursor) = change.cursor {
        sql::move_cursors(session, &[(scope_id, cursor)]).await?;
        sql::count_scopes(session, &[(series, u64::from(change.is_new))]).await?;
    }
    adopt(session, scope_id, &change.adopted).await?;
    if change.resets_pool_server {
        pool::forget_server(session, scope_id).await?;
    }
    for operation in &change.operations {
        operation::append(session, Some(operation)).await?;
    }
    session.commit().await?;
    Ok(outcomes.remove(0))
}

async fn adopt(session: &Session, scope_id: &ScopeId, positions: &[Position]) -> Result<(), Failure> {
    let Some(last) = positions.iter().max() else { return Ok(()) };
    let insert = "INSERT INTO bates.adopted (series, scope, position) SELECT $1, $2, * FROM UNNEST($3)
                  ON CONFLICT DO NOTHING";
    let raise =
        "UPDATE bates.cursor SET adopted_to = greatest(adopted_to, $3) WHERE series = $1 AND scope = $2";
    let (series, scope) = (scope_id.series.as_str(), scope_id.scope.as_str());
    let all: Vec<i64> = positions.iter().map(|position| to_i64(position.value())).collect();
    session.query(insert, &[&series, &scope, &all]).await?;
    session.query(raise, &[&series, &scope, &to_i64(last.value() + 1)]).await?;
    Ok(())
}

pub(crate) async fn describe(
    session: &Session,
    series: &SeriesName,
    change: &DescriptionChange,
) -> Result<bool, Failure> {
    lock_unmarked(session).await?;
    // The row of the store is locked, so the revision is that of the last commit.
    let sql = "SELECT description, (SELECT revision FROM bates.store)
               FROM bates.series WHERE name = $1 FOR NO KEY UPDATE";
    let rows = session.query(sql, &[&series.as_str()]).await?;
    let row = rows.first().ok_or_else(|| StoreError::UnknownSeries(series.as_str().into()))?;
    let fits = change.fits(row.get(0), sql::get_u64(row, 1));
    if fits {
        put_description(session, series, change.after.as_deref()).await?;
    }
    Ok(fits)
}

pub(crate) async fn put_description(
    session: &Session,
    series: &SeriesName,
    description: Option<&str>,
) -> Result<(), Failure> {
    let sql = "WITH revised AS (UPDATE bates.store SET revision = revision + 1)
               UPDATE bates.series SET description = $2 WHERE name = $1 RETURNING true";
    let rows = session.query(sql, &[&series.as_str(), &description]).await?;
    if rows.is_empty() { Err(StoreError::UnknownSeries(series.as_str().into()).into()) } else { Ok(()) }
}
