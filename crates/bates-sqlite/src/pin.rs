//! What decides how positions read: written once, and compared ever after.

use bates_core::{
    Definition, Pinned, Pinning, Promise, PromiseChange, Redescription, SeriesName, StoreError,
};
use rusqlite::{Connection, OptionalExtension, Result, Transaction, params};

use crate::write::{self, Refusable, integer, whole};

pub(crate) fn pin(
    transaction: &Transaction<'_>,
    asked: &Definition,
    fresh_key: Option<&[u8]>,
) -> Refusable<Pinned, StoreError> {
    let Some((pinned, permutation_key)) = pinned(transaction, &asked.series)? else {
        transaction.prepare_cached(
            "INSERT INTO series (name, template, parameters, shuffled, start, reset, time_zone, construction, permutation_key,
                 promise, rules)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            asked.series.as_str(),
            asked.template,
            asked.parameters,
            asked.shuffled,
            integer(asked.start),
            asked.reset,
            asked.time_zone,
            asked.construction,
            fresh_key,
            asked.promise.map(Promise::name),
            asked.rules
        ])?;
        let permutation_key = fresh_key.map(<[u8]>::to_vec);
        return Ok(Ok(Pinned { permutation_key, is_new: true, has_changed_rules: false }));
    };
    if let Some(refused) = StoreError::of_difference(&pinned, asked) {
        return Ok(Err(refused));
    }
    if let (None, Some(promise)) = (pinned.promise, asked.promise) {
        let sql = "UPDATE series SET promise = ? WHERE name = ?";
        transaction.prepare_cached(sql)?.execute([promise.name(), asked.series.as_str()])?;
    }
    if let Some(rules) = pinned.new_rules(asked) {
        let sql = "UPDATE series SET rules = ? WHERE name = ?";
        transaction.prepare_cached(sql)?.execute([rules, asked.series.as_str()])?;
    }
    Ok(Ok(Pinned::again(&pinned, asked, permutation_key)))
}

/// Changes the promise of a series, if it is `from`. Where a scope becomes gapless, it is so from its cursor on.
pub(crate) fn change_promise(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    PromiseChange { from, to }: PromiseChange,
    described: Option<&Redescription>,
) -> Refusable<bool, StoreError> {
    let mut pinned = transaction.prepare_cached("SELECT promise FROM series WHERE name = ?")?;
    let pinned = pinned.query_row([series.as_str()], |row| row.get::<_, Option<String>>(0)).optional()?;
    let Some(pinned) = pinned else { return Ok(Err(StoreError::UnknownSeries(series.as_str().into()))) };
    if pinned.as_deref().is_some_and(|pinned| pinned != from.name()) {
        return Ok(Ok(pinned.as_deref() == Some(to.name())));
    }
    if let Some(Redescription { before, after }) = described {
        match write::describe(transaction, series, Some(before), Some(after))? {
            Ok(true) => {}
            refused => return Ok(refused),
        }
    }
    transaction.execute("UPDATE series SET promise = ? WHERE name = ?", [to.name(), series.as_str()])?;
    let gapless_from = if to == Promise::Gapless { "next" } else { "0" };
    let of = "series_id = (SELECT id FROM series WHERE name = ?)";
    transaction
        .execute(&format!("UPDATE cursor SET gapless_from = {gapless_from} WHERE {of}"), [series.as_str()])?;
    Ok(Ok(true))
}

/// What each series promises, where that was pinned.
pub(crate) fn promises(connection: &Connection) -> Result<Vec<(SeriesName, Promise)>> {
    let mut statement =
        connection.prepare_cached("SELECT name, promise FROM series WHERE promise IS NOT NULL")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let read = |(name, promise): (String, String)| Some((name.parse().ok()?, promise.parse().ok()?));
    rows.filter_map(|row| row.map(read).transpose()).collect()
}

pub(crate) fn pinned(connection: &Connection, series: &SeriesName) -> Result<Option<Pinning>> {
    let mut statement = connection.prepare_cached(
        "SELECT template, shuffled, start, reset, time_zone, construction, permutation_key, parameters, promise, rules
         FROM series WHERE name = ?",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let definition = Definition {
            series: series.clone(),
            template: row.get::<_, String>(0)?.into(),
            parameters: row.get::<_, String>(7)?.into(),
            shuffled: row.get(1)?,
            start: whole(row.get(2)?),
            reset: row.get::<_, String>(3)?.into(),
            time_zone: row.get::<_, String>(4)?.into(),
            construction: row.get(5)?,
            promise: row.get::<_, Option<String>>(8)?.and_then(|promise| promise.parse().ok()),
            rules: row.get::<_, Option<String>>(9)?.map(Into::into),
        };
        Ok((definition, row.get(6)?))
    };
    statement.query_row([series.as_str()], read).optional()
}
