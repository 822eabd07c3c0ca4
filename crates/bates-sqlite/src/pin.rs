//! The settings that decide the text of a number: written once, and compared ever after.

use bates_core::{
    Definition, DescriptionChange, PinOutcome, PinnedSeries, Promise, PromiseChange, PromiseDecision,
    SeriesName, StoreError,
};
use rusqlite::{Connection, Result, Transaction, params};

use crate::error::WriteResult;
use crate::write::{self, execute, to_i64, to_u64};

pub(crate) fn pin(
    transaction: &Transaction<'_>,
    requested: &Definition,
    fresh_key: Option<&[u8]>,
) -> WriteResult<PinOutcome> {
    let Some((pinned, permutation_key)) = pinned(transaction, &requested.series)? else {
        let sql =
            "INSERT INTO series (name, template, parameters, shuffled, start, reset, time_zone, construction,
                 permutation_key, promise, rules)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let Definition { series, template, parameters, shuffled, reset, time_zone, rules, .. } = requested;
        let (name, start, version) = (series.as_str(), to_i64(requested.start), requested.construction);
        let promise = requested.promise.map(Promise::name);
        let values = params![
            name, template, parameters, shuffled, start, reset, time_zone, version, fresh_key, promise, rules
        ];
        execute(transaction, sql, values)?;
        let permutation_key = fresh_key.map(<[u8]>::to_vec);
        return Ok(PinOutcome { permutation_key, is_new: true, has_changed_rules: false });
    };
    if let Some(refused) = StoreError::for_difference(&pinned, requested) {
        return Err(refused.into());
    }
    if let (None, Some(promise)) = (pinned.promise, requested.promise) {
        let sql = "UPDATE series SET promise = ? WHERE name = ?";
        execute(transaction, sql, [promise.name(), requested.series.as_str()])?;
    }
    if let Some(rules) = pinned.rules_to_keep(requested) {
        let sql = "UPDATE series SET rules = ? WHERE name = ?";
        execute(transaction, sql, [rules, requested.series.as_str()])?;
    }
    Ok(PinOutcome::of_pinned(&pinned, requested, permutation_key))
}

/// Changes the promise of a series if it is `from`. Scopes that become gapless are gapless from their cursors on.
pub(crate) fn change_promise(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    change: PromiseChange,
    described: Option<&DescriptionChange>,
) -> WriteResult<bool> {
    let sql = "SELECT promise FROM series WHERE name = ?";
    let pinned: Option<Option<String>> = write::row(transaction, sql, [series.as_str()], |row| row.get(0))?;
    let pinned = pinned.ok_or_else(|| write::unknown(series))?;
    let decision = change.decide(pinned.and_then(|name| name.parse().ok()));
    if decision == PromiseDecision::Refuse {
        return Ok(false);
    }
    if let Some(described) = described
        && !write::describe(transaction, series, described)?
    {
        return Ok(false);
    }
    if decision == PromiseDecision::Keep {
        return Ok(true);
    }
    let to = change.to;
    execute(transaction, "UPDATE series SET promise = ? WHERE name = ?", [to.name(), series.as_str()])?;
    let gapless_from = if to == Promise::Gapless { "next" } else { "0" };
    let sql = format!(
        "UPDATE cursor SET gapless_from = {gapless_from} WHERE series_id = (SELECT id FROM series WHERE name = ?)"
    );
    execute(transaction, &sql, [series.as_str()])?;
    Ok(true)
}

pub(crate) fn promises(connection: &Connection) -> Result<Vec<(SeriesName, Promise)>> {
    let sql = "SELECT name, promise FROM series WHERE promise IS NOT NULL";
    let pinned = write::rows(connection, sql, [], |row| {
        let (name, promise) = (row.get_ref(0)?.as_str()?.parse(), row.get_ref(1)?.as_str()?.parse());
        Ok(name.ok().zip(promise.ok()))
    });
    Ok(pinned?.into_iter().flatten().collect())
}

pub(crate) fn pinned(connection: &Connection, series: &SeriesName) -> Result<Option<PinnedSeries>> {
    let sql =
        "SELECT template, shuffled, start, reset, time_zone, construction, permutation_key, parameters, promise, rules
         FROM series WHERE name = ?";
    write::row(connection, sql, [series.as_str()], |row| {
        let text = |column| row.get::<_, String>(column).map(Into::into);
        let definition = Definition {
            series: series.clone(),
            template: text(0)?,
            parameters: text(7)?,
            shuffled: row.get(1)?,
            start: to_u64(row.get(2)?),
            reset: text(3)?,
            time_zone: text(4)?,
            construction: row.get(5)?,
            promise: row.get::<_, Option<String>>(8)?.and_then(|promise| promise.parse().ok()),
            rules: row.get::<_, Option<String>>(9)?.map(Into::into),
        };
        Ok((definition, row.get(6)?))
    })
}
