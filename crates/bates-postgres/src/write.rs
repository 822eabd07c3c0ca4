//! Rare writes besides grants, one at a time. Each may be done twice without harm, so what fails is tried again.

use bates_core::ledger::{Decision, IdempotencyKeys, Outcome, Request, ScopeBefore, decide};
use bates_core::{
    Definition, DescriptionChange, PinOutcome, PinnedSeries, Position, Promise, PromiseChange, ScopeId,
    SeriesName, StoreError,
};

use crate::batch::sql::{self, integer};
use crate::error::Failed;
use crate::moving::lock_unmarked;
use crate::parameter::Parameter;
use crate::session::Session;
use crate::{pool, read};

pub(crate) async fn pin(
    session: &Session,
    asked: &Definition,
    fresh_key: Option<&[u8]>,
) -> Result<PinOutcome, Failed> {
    match read::pinned(session, &asked.series).await? {
        Some((kept, key)) if kept.promise.is_some() || asked.promise.is_none() => {
            if let Some(rules) = kept.rules_to_keep(asked) {
                keep_rules(session, &kept, rules).await?;
            }
            return compared(asked, (kept, key), false);
        }
        Some(_) => pin_first_promise(session, asked).await?,
        None => {}
    }
    let insert = async {
        lock_unmarked(session).await?;
        insert(session, asked, fresh_key).await
    };
    let is_new = session.transact(insert).await?;
    let Some(pinned) = read::pinned(session, &asked.series).await? else {
        return Err(Failed::Passing("a series that was written is not there".into()));
    };
    compared(asked, pinned, is_new)
}

fn compared(asked: &Definition, pinned: PinnedSeries, is_new: bool) -> Result<PinOutcome, Failed> {
    let (pinned, permutation_key) = pinned;
    match StoreError::for_difference(&pinned, asked) {
        None => Ok(PinOutcome { is_new, ..PinOutcome::of_pinned(&pinned, asked, permutation_key) }),
        Some(refused) => Err(Failed::Lasting(refused)),
    }
}

/// If several nodes change the rules at once, the first writes its own, and the others find them changed.
async fn keep_rules(session: &Session, kept: &Definition, rules: &str) -> Result<(), Failed> {
    let sql = "UPDATE bates.series SET rules = CASE WHEN rules IS NOT DISTINCT FROM $2 THEN $3 ELSE $4 END WHERE name = $1";
    let of: [&dyn Parameter; 4] = [&kept.series.as_str(), &kept.rules, &rules, &Definition::RULES_CHANGED];
    write_unmarked(session, sql, &of).await
}

async fn write_unmarked(session: &Session, sql: &str, of: &[&dyn Parameter]) -> Result<(), Failed> {
    session.begin().await?;
    lock_unmarked(session).await?;
    session.query(sql, of).await?;
    session.commit().await
}

/// In a store from before promises were pinned, the first node pins it.
async fn pin_first_promise(session: &Session, asked: &Definition) -> Result<(), Failed> {
    let sql = "UPDATE bates.series SET promise = $2 WHERE name = $1 AND promise IS NULL";
    write_unmarked(session, sql, &[&asked.series.as_str(), &asked.promise.map(Promise::name)]).await
}

/// Changes the promise of a series if it is `from`, once no batch is under way that has not seen it.
pub(crate) async fn change_promise(
    session: &Session,
    series: &SeriesName,
    PromiseChange { from, to }: PromiseChange,
    described: Option<&DescriptionChange>,
) -> Result<bool, Failed> {
    let change = "WITH seen AS (UPDATE bates.store SET revision = revision + 1)
                  UPDATE bates.series SET promise = $3 WHERE name = $1 AND coalesce(promise, $2) IN ($2, $3)
                  RETURNING true";
    let gapless_from = if to == Promise::Gapless { "next" } else { "0" };
    let begin = format!("UPDATE bates.cursor SET gapless_from = {gapless_from} WHERE series = $1");
    let name = series.as_str();
    session.begin().await?;
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    lock_unmarked(session).await?;
    let before = session.query("SELECT promise FROM bates.series WHERE name = $1", &[&name]).await?;
    let is_done = before.first().is_some_and(|row| row.get::<_, Option<&str>>(0) == Some(to.name()));
    let is_changed = !is_done && !session.query(change, &[&name, &from.name(), &to.name()]).await?.is_empty();
    if is_changed {
        session.query(&begin, &[&name]).await?;
    }
    let is_described = match described {
        Some(DescriptionChange { before, after }) => {
            describe(session, series, Some(before), Some(after)).await?
        }
        None => true,
    };
    let is_so = is_described && (is_done || is_changed);
    session.batch_execute(if is_so { "COMMIT" } else { "ROLLBACK" }).await?;
    Ok(is_so)
}

/// Answers whether the series is new: of nodes that pin it together, one is the first.
pub(crate) async fn insert(
    session: &Session,
    asked: &Definition,
    fresh_key: Option<&[u8]>,
) -> Result<bool, Failed> {
    let sql = "INSERT INTO bates.series
                   (name, template, parameters, shuffled, start, reset, time_zone, construction, permutation_key, promise,
                    rules)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (name) DO NOTHING RETURNING true";
    let (start, version) = (integer(asked.start), i32::from(asked.construction));
    let (name, promise) = (asked.series.as_str(), asked.promise.map(Promise::name));
    let Definition { template, parameters, shuffled, reset, time_zone, rules, .. } = asked;
    let of: [&dyn Parameter; 11] = [
        &name, template, parameters, shuffled, &start, reset, time_zone, &version, &fresh_key, &promise,
        rules,
    ];
    Ok(!session.query(sql, &of).await?.is_empty())
}

/// Decides a request of an operator and writes the change. The locks are those of a batch that makes scopes.
pub(crate) async fn operate(
    session: &Session,
    scope_id: &ScopeId,
    request: &Request,
) -> Result<Outcome, Failed> {
    let series = scope_id.series.as_str();
    session.begin().await?;
    lock_unmarked(session).await?;
    let locked = sql::lock_series(session, &[series]).await?;
    let before = ScopeBefore {
        series: locked.first().map(|(_, series)| series.before),
        cursor: sql::lock_cursors(session, &[scope_id]).await?.first().map(|locked| locked.cursor),
        ..ScopeBefore::default()
    };
    let Decision { mut outcomes, change } =
        decide(&before, scope_id, [request], &mut IdempotencyKeys::default());
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
    session.commit().await?;
    Ok(outcomes.remove(0))
}

async fn adopt(session: &Session, scope_id: &ScopeId, positions: &[Position]) -> Result<(), Failed> {
    let Some(last) = positions.iter().max() else { return Ok(()) };
    let insert = "INSERT INTO bates.adopted (series, scope, position) SELECT $1, $2, * FROM UNNEST($3)
                  ON CONFLICT DO NOTHING";
    let raise =
        "UPDATE bates.cursor SET adopted_to = greatest(adopted_to, $3) WHERE series = $1 AND scope = $2";
    let (series, scope) = (scope_id.series.as_str(), scope_id.scope.as_str());
    let all: Vec<i64> = positions.iter().map(|position| integer(position.value())).collect();
    session.query(insert, &[&series, &scope, &all]).await?;
    session.query(raise, &[&series, &scope, &integer(last.value() + 1)]).await?;
    Ok(())
}

/// Describes a series if it has the description `before`, or this one already.
pub(crate) async fn describe(
    session: &Session,
    series: &SeriesName,
    before: Option<&str>,
    description: Option<&str>,
) -> Result<bool, Failed> {
    lock_unmarked(session).await?;
    let sql = "SELECT description FROM bates.series WHERE name = $1 FOR NO KEY UPDATE";
    let rows = session.query(sql, &[&series.as_str()]).await?;
    let found = rows.first().ok_or_else(|| StoreError::UnknownSeries(series.as_str().into()))?;
    let found: Option<&str> = found.get(0);
    if found != before && found != description {
        return Ok(false);
    }
    put_description(session, series, description).await?;
    Ok(true)
}

pub(crate) async fn put_description(
    session: &Session,
    series: &SeriesName,
    description: Option<&str>,
) -> Result<(), Failed> {
    let sql = "WITH seen AS (UPDATE bates.store SET revision = revision + 1)
               UPDATE bates.series SET description = $2 WHERE name = $1 RETURNING true";
    let rows = session.query(sql, &[&series.as_str(), &description]).await?;
    if rows.is_empty() { Err(StoreError::UnknownSeries(series.as_str().into()).into()) } else { Ok(()) }
}
