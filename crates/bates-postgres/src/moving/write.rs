//! Writes pages of another store unchanged: arrays in, one statement per table. An existing cursor never falls.

use bates_core::{
    AuditRecord, Definition, Gap, MovePage, MovedAdoptions, MovedDocument, MovedKey, MovedScope,
    PositionRange, ScopeKey, SeriesName, StoreError,
};
use uuid::Uuid;

use crate::audit::{self, micros};
use crate::batch::sql::{self, column, to_i64};
use crate::error::Failure;
use crate::gap::put_reconciled;
use crate::outbox::{escape_nul, without_nul};
use crate::parameter::Parameter;
use crate::session::Session;
use crate::{caller, client_lease, operation};

const DOCUMENTS: &str = "
    INSERT INTO bates.document (document_id, series, scope, position, number, state, body, attempts, last_error,
        created_at, updated_at, due_at, in_doubt, caller)
    SELECT document_id, series, scope, position, number, state, body, attempts, last_error,
        'epoch'::timestamptz + created * interval '1 microsecond',
        'epoch'::timestamptz + updated * interval '1 microsecond',
        'epoch'::timestamptz + due * interval '1 microsecond', in_doubt, caller
    FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS moved
        (document_id, series, scope, position, number, state, body, attempts, last_error, created, updated, due,
            in_doubt, caller)
    ON CONFLICT (document_id) DO UPDATE
    SET state = excluded.state, body = excluded.body, attempts = excluded.attempts,
        last_error = excluded.last_error, updated_at = excluded.updated_at, due_at = excluded.due_at,
        in_doubt = excluded.in_doubt";

/// The number of a key is written with it, so its document need not be looked up. A key never changes.
const KEYS: &str = "
    INSERT INTO bates.idempotency
        (caller, series, key, digest, document_id, batch, scope, position, number, pruned_as)
    SELECT caller, series, key, digest, document_id, $10, scope, position, number, pruned_as
    FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9) AS moved
        (caller, series, key, digest, document_id, scope, position, number, pruned_as)
    ON CONFLICT (caller, series, key) DO NOTHING";

const GAPS: &str = "
    INSERT INTO bates.gap (series, scope, first, last, reason, seen_at)
    SELECT series, scope, first, last, reason, 'epoch'::timestamptz + seen * interval '1 microsecond'
    FROM UNNEST($1, $2, $3, $4, $5, $6) AS gap (series, scope, first, last, reason, seen)
    ON CONFLICT (series, scope, first) DO UPDATE
        SET last = excluded.last, reason = excluded.reason, seen_at = excluded.seen_at";

/// No epoch has begun here yet: existing rows are from an earlier attempt.
const POOLS: &str = "
    INSERT INTO bates.pool (series, scope, epoch) SELECT $1, * FROM UNNEST($2, $3)
    ON CONFLICT (series, scope) DO UPDATE SET epoch = excluded.epoch, server_run = NULL, server_replication = NULL";

const CURSORS: &str = "
    INSERT INTO bates.cursor AS stored (series, scope, next, version, gapless_from)
    SELECT $1, * FROM UNNEST($2, $3, $4, $5)
    ON CONFLICT (series, scope) DO UPDATE SET
        next = greatest(stored.next, excluded.next),
        version = greatest(stored.version, excluded.version), gapless_from = excluded.gapless_from
    RETURNING (xmax = 0)";

const LEDGER: &str = "
    INSERT INTO bates.ledger (series, scope, first, last, node, batch)
    SELECT $1, issued.*, $5, $6 FROM UNNEST($2, $3, $4) AS issued
    ON CONFLICT (series, scope, first) DO UPDATE SET last = excluded.last";

const LOST: &str = "
    INSERT INTO bates.lost (series, scope, first, last, reason)
    SELECT $1, lost.* FROM UNNEST($2, $3, $4, $5) AS lost
    ON CONFLICT (series, scope, first) DO NOTHING";

pub(super) async fn page(session: &Session, node: Uuid, page: &MovePage) -> Result<(), Failure> {
    match page {
        MovePage::Identity(id) => {
            session.execute("UPDATE bates.store SET id = $1", &[id]).await?;
        }
        MovePage::Definition(pinned, key) => definition(session, pinned, key.as_deref()).await?,
        MovePage::Scopes(series, page) => scopes(session, node, series, page).await?,
        MovePage::Adopted(series, page) => adopted(session, series, page).await?,
        MovePage::Pools(series, page) => pools(session, series, page).await?,
        MovePage::Documents(page) => documents(session, page).await?,
        MovePage::Keys(page) => keys(session, page).await?,
        MovePage::Gaps(page) => gaps(session, page).await?,
        MovePage::Reconciled(page) => put_reconciled(session, page).await?,
        MovePage::Records(page) => {
            let records: Vec<&AuditRecord> = page.iter().collect();
            audit::insert(session, &records).await?;
        }
        MovePage::Tokens(_)
        | MovePage::Quotas(_)
        | MovePage::Operations(_)
        | MovePage::Chains(_)
        | MovePage::Arrival(_) => callers(session, page).await?,
        MovePage::ClientLeases(page) => {
            for lease in page {
                client_lease::put(session, lease).await?;
            }
        }
        MovePage::Descriptions(page) => {
            for (series, description) in page {
                crate::write::put_description(session, series, Some(description)).await?;
            }
        }
    }
    Ok(())
}

/// Tokens, their quotas, and the log of what callers changed.
async fn callers(session: &Session, page: &MovePage) -> Result<(), Failure> {
    match page {
        MovePage::Tokens(tokens) => {
            for token in tokens {
                caller::insert(session, token).await?;
            }
        }
        MovePage::Quotas(quotas) => {
            for quota in quotas {
                caller::put_quota(session, quota).await?;
            }
        }
        MovePage::Arrival(arrival) => operation::append(session, Some(arrival)).await?,
        MovePage::Operations(records) => {
            for record in records {
                operation::import(session, record).await?;
            }
        }
        MovePage::Chains(heads) => {
            for head in heads {
                operation::put_head(session, head).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

async fn definition(session: &Session, definition: &Definition, key: Option<&[u8]>) -> Result<(), Failure> {
    crate::write::insert(session, definition, key).await?;
    match crate::read::pinned(session, &definition.series).await? {
        Some((pinned, pinned_key)) if pinned == *definition && pinned_key.as_deref() == key => Ok(()),
        _ => Err(StoreError::UnknownSeries(definition.series.as_str().into()).into()),
    }
}

async fn scopes(
    session: &Session,
    node: Uuid,
    series: &SeriesName,
    scopes: &[MovedScope],
) -> Result<(), Failure> {
    let series = series.as_str();
    if sql::lock_series(session, &[series]).await?.is_empty() {
        return Err(StoreError::UnknownSeries(series.into()).into());
    }
    let keys = column(scopes, |moved| moved.scope.as_str());
    let nexts = column(scopes, |adopted| to_i64(adopted.cursor.next));
    let versions = column(scopes, |adopted| to_i64(adopted.cursor.version));
    let gapless = column(scopes, |adopted| to_i64(adopted.gapless_from));
    let rows = session.query(CURSORS, &[&series, &keys, &nexts, &versions, &gapless]).await?;
    let added = rows.iter().filter(|row| row.get(0)).count() as u64;
    sql::count_scopes(session, &[(series, added)]).await?;
    let issued = scopes.iter().flat_map(|moved| moved.ledger.iter().map(|range| (&moved.scope, *range)));
    let (at, firsts, lasts) = ranges(issued);
    session.execute(LEDGER, &[&series, &at, &firsts, &lasts, &node, &Uuid::now_v7()]).await?;
    // An earlier run of the move may have written the lost positions as other ranges.
    let delete = "DELETE FROM bates.lost WHERE series = $1 AND scope = ANY ($2)";
    session.execute(delete, &[&series, &keys]).await?;
    let lost = || scopes.iter().flat_map(|moved| moved.lost.iter().map(|lost| (&moved.scope, lost)));
    let (at, firsts, lasts) = ranges(lost().map(|(scope, missing)| (scope, missing.range)));
    let reasons: Vec<&str> = lost().map(|(_, missing)| missing.reason.name()).collect();
    session.execute(LOST, &[&series, &at, &firsts, &lasts, &reasons]).await?;
    Ok(())
}

/// Invariant: the same commit writes to the cursor where the adopted positions end.
async fn adopted(session: &Session, series: &SeriesName, scopes: &[MovedAdoptions]) -> Result<(), Failure> {
    let raise = "UPDATE bates.cursor SET adopted_to = greatest(cursor.adopted_to, moved.adopted_to)
                 FROM UNNEST($2, $3) AS moved (scope, adopted_to) WHERE series = $1 AND cursor.scope = moved.scope";
    let insert = "INSERT INTO bates.adopted (series, scope, position) SELECT $1, * FROM UNNEST($2, $3)
                  ON CONFLICT DO NOTHING";
    let series = series.as_str();
    let keys = column(scopes, |moved| moved.scope.as_str());
    let ends = column(scopes, |moved| moved.positions.last().map_or(0, |last| to_i64(last.value() + 1)));
    session.execute(raise, &[&series, &keys, &ends]).await?;
    let each = scopes.iter().flat_map(|MovedAdoptions { scope, positions }| {
        positions.iter().map(|position| (scope.as_str(), to_i64(position.value())))
    });
    let (at, positions): (Vec<&str>, Vec<i64>) = each.unzip();
    session.execute(insert, &[&series, &at, &positions]).await?;
    Ok(())
}

async fn pools(session: &Session, series: &SeriesName, pools: &[(ScopeKey, u64)]) -> Result<(), Failure> {
    let scopes = column(pools, |(scope, _)| scope.as_str());
    let epochs = column(pools, |(_, epoch)| to_i64(*epoch));
    session.execute(POOLS, &[&series.as_str(), &scopes, &epochs]).await?;
    Ok(())
}

async fn documents(session: &Session, moved: &[MovedDocument]) -> Result<(), Failure> {
    let (series, scopes) = sql::columns(moved.iter().map(|moved| &moved.document.scope_id));
    let ids = column(moved, |moved| moved.document.id);
    let positions = column(moved, |moved| to_i64(moved.document.position.value()));
    let numbers = column(moved, |moved| &*moved.document.number);
    let states = column(moved, |moved| moved.document.state.name());
    let bodies = column(moved, |moved| moved.body.as_deref().map(escape_nul));
    let attempts = column(moved, |moved| i32::try_from(moved.document.attempts).unwrap_or(i32::MAX));
    let errors = column(moved, |moved| moved.document.last_error.as_deref().map(without_nul));
    let created = column(moved, |moved| micros(moved.document.created));
    let updated = column(moved, |moved| micros(moved.document.updated));
    let due = column(moved, |moved| moved.document.due.map(micros));
    let doubts = column(moved, |moved| moved.document.in_doubt);
    let callers = column(moved, |moved| without_nul(&moved.document.caller));
    let parameters: [&dyn Parameter; 14] = [
        &ids, &series, &scopes, &positions, &numbers, &states, &bodies, &attempts, &errors, &created,
        &updated, &due, &doubts, &callers,
    ];
    session.execute(DOCUMENTS, &parameters).await?;
    Ok(())
}

async fn keys(session: &Session, moved: &[MovedKey]) -> Result<(), Failure> {
    let (series, scopes) = sql::columns(moved.iter().map(|moved| &moved.scope_id));
    let callers = column(moved, |moved| &*moved.idempotency.caller);
    let keys = column(moved, |moved| &*moved.idempotency.key);
    let digests = column(moved, |moved| &moved.idempotency.digest[..]);
    let document_ids = column(moved, |moved| moved.document_id);
    let positions = column(moved, |moved| to_i64(moved.position.value()));
    let numbers = column(moved, |moved| &*moved.number);
    let pruned = column(moved, |moved| moved.pruned_as.name());
    let batch = Uuid::now_v7();
    let parameters: [&dyn Parameter; 10] =
        [&callers, &series, &keys, &digests, &document_ids, &scopes, &positions, &numbers, &pruned, &batch];
    session.execute(KEYS, &parameters).await?;
    Ok(())
}

async fn gaps(session: &Session, gaps: &[Gap]) -> Result<(), Failure> {
    let (series, scopes) = sql::columns(gaps.iter().map(|gap| &gap.scope_id));
    let (firsts, lasts) = sql::bounds(gaps.iter().map(|gap| gap.missing.range));
    let reasons = column(gaps, |gap| gap.missing.reason.name());
    let seen = column(gaps, |gap| micros(gap.first_seen));
    session.execute(GAPS, &[&series, &scopes, &firsts, &lasts, &reasons, &seen]).await?;
    Ok(())
}

fn ranges<'s>(
    ranges: impl Iterator<Item = (&'s ScopeKey, PositionRange)>,
) -> (Vec<&'s str>, Vec<i64>, Vec<i64>) {
    let row = |(scope, range): (&'s ScopeKey, PositionRange)| {
        (scope.as_str(), to_i64(range.from()), to_i64(range.to() - 1))
    };
    ranges.map(row).collect()
}
