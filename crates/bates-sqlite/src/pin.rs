//! What decides how positions read: written once, and compared ever after.

use bates_core::{Definition, Pinned, StoreError};
use rusqlite::{OptionalExtension, Result, Transaction, params};

use crate::write::{Refusable, integer, whole};

pub(crate) fn pin(
    transaction: &Transaction<'_>,
    asked: &Definition,
    fresh_key: Option<&[u8]>,
) -> Refusable<Pinned, StoreError> {
    let Some((pinned, permutation_key)) = pinned(transaction, asked)? else {
        transaction.prepare_cached(
            "INSERT INTO series (name, template, parameters, shuffled, start, reset, time_zone, construction, permutation_key)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            fresh_key
        ])?;
        return Ok(Ok(Pinned { permutation_key: fresh_key.map(<[u8]>::to_vec), is_new: true }));
    };
    Ok(match pinned.difference(asked) {
        None => Ok(Pinned { permutation_key, is_new: false }),
        Some((what, pinned, found)) => Err(StoreError::Pinned {
            series: asked.series.as_str().into(),
            what: what.into(),
            pinned: pinned.into(),
            found: found.into(),
        }),
    })
}

fn pinned(
    transaction: &Transaction<'_>,
    asked: &Definition,
) -> Result<Option<(Definition, Option<Vec<u8>>)>> {
    let mut statement = transaction.prepare_cached(
        "SELECT template, shuffled, start, reset, time_zone, construction, permutation_key, parameters
         FROM series WHERE name = ?",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let definition = Definition {
            series: asked.series.clone(),
            template: row.get::<_, String>(0)?.into(),
            parameters: row.get::<_, String>(7)?.into(),
            shuffled: row.get(1)?,
            start: whole(row.get(2)?),
            reset: row.get::<_, String>(3)?.into(),
            time_zone: row.get::<_, String>(4)?.into(),
            construction: row.get(5)?,
        };
        Ok((definition, row.get(6)?))
    };
    statement.query_row([asked.series.as_str()], read).optional()
}
