//! Pages of the store as another one adopts them. Each is one statement and begins where the one before ended, by an
//! index: what was read is not looked at again.

use std::collections::BTreeMap;

use bates_core::{
    Adopted, Idempotency, Kept, Lease, Missing, Place, Ranges, Reason, Request, ScopeKey, SeriesName,
    SetAside, State, StoreError,
};
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::batch::sql::{integer, whole};
use crate::error::Failed;
use crate::outbox::{bounded, list};
use crate::read;
use crate::session::Session;

/// Everything of scopes but their cursors: ranges with what each is. Ranges of the ledger that touch are one, which
/// keeps an answer small where each commit added one. What shared pools hold is lost, as if each was begun anew; what was
/// not pushed yet its filler may have pushed. What clients hold moves with their leases.
const RANGES: &str = "
    SELECT scope, min(first), max(last), 'issued' FROM (
        SELECT scope, first, last, sum(step) OVER (PARTITION BY scope ORDER BY first) AS run FROM (
            SELECT scope, first, last,
                   CASE WHEN first = lag(last) OVER (PARTITION BY scope ORDER BY first) + 1 THEN 0 ELSE 1 END AS step
            FROM bates.ledger WHERE series = $1 AND scope BETWEEN $2 AND $3
        ) AS steps
    ) AS runs GROUP BY scope, run
    UNION ALL
    SELECT scope, first, last, 'held' FROM bates.lease WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last, CASE WHEN is_pushed THEN 'pool_invalidated' ELSE 'crash_skip' END FROM bates.pooled
        WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last, 'with_client' FROM bates.client_lease WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last, 'burned' FROM bates.burned WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last, reason FROM bates.lost WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, gapless_from, gapless_from, 'gapless_from' FROM bates.cursor
        WHERE series = $1 AND scope BETWEEN $2 AND $3 AND gapless_from > 0";

/// Scope, position and number are those of the document as long as it is there.
const REQUESTS: &str = "
    SELECT k.series, coalesce(d.scope, k.scope), k.caller, k.key, k.digest, k.event,
           coalesce(d.position, k.position), coalesce(d.number, k.number), coalesce(k.pruned_as,
               CASE WHEN d.state IN ('reserved', 'confirmed', 'voided') THEN 'confirmed' ELSE 'delivered' END)
    FROM (
        SELECT * FROM bates.idempotency AS known
        WHERE $1::text IS NULL OR (known.caller, known.series, known.key) > ($1, $2, $3)
        ORDER BY known.caller, known.series, known.key LIMIT $4
    ) AS k
    LEFT JOIN LATERAL (
        SELECT scope, position, number, state FROM bates.document WHERE event = k.event OFFSET 0
    ) AS d ON true
    ORDER BY k.caller, k.series, k.key";

#[derive(Default)]
struct Found {
    ledger: Vec<Lease>,
    held: Vec<Lease>,
    with_clients: Vec<Lease>,
    lost: Vec<Missing>,
    gapless_from: u64,
}

pub(super) async fn leaving(
    session: &Session,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<Adopted>, Failed> {
    let cursors = read::scopes(session, series, after, limit).await?;
    let (Some((first, _)), Some((last, _))) = (cursors.first(), cursors.last()) else {
        return Ok(Vec::new());
    };
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&series.as_str(), Type::TEXT), (&first.as_str(), Type::TEXT), (&last.as_str(), Type::TEXT)];
    let mut ranges: BTreeMap<Box<str>, Found> = BTreeMap::new();
    for row in session.query_typed(RANGES, &parameters).await? {
        let Some(range) = Lease::new(whole(&row, 1), whole(&row, 2) + 1) else { continue };
        let found = ranges.entry(row.get::<_, &str>(0).into()).or_default();
        match row.get(3) {
            "issued" => found.ledger.push(range),
            "held" => found.held.push(range),
            "with_client" => found.with_clients.push(range),
            "gapless_from" => found.gapless_from = range.from(),
            reason => found.lost.extend(Reason::named(reason).map(|reason| Missing { range, reason })),
        }
    }
    let adopted = cursors.into_iter().map(|(scope, cursor)| {
        let Found { mut ledger, held, with_clients, mut lost, gapless_from } =
            ranges.remove(scope.as_str()).unwrap_or_default();
        ledger.sort_unstable();
        lost.extend(uncertain(held, with_clients, &lost));
        Adopted { scope, cursor, ledger, lost: Missing::each_once(&lost), gapless_from }
    });
    Ok(adopted.collect())
}

/// What nodes held is uncertain from here on, whether they live or not: they may hand it out until they look at the
/// store. Burned positions reached no caller, and clients have their own, even if they stand among the
/// ranges of nodes.
fn uncertain(held: Vec<Lease>, with_clients: Vec<Lease>, lost: &[Missing]) -> Vec<Missing> {
    let held = Ranges::of(held)
        .without(&Ranges::of(lost.iter().map(|lost| lost.range)))
        .without(&Ranges::of(with_clients));
    held.iter().map(|range| Missing { range, reason: Reason::CrashSkip }).collect()
}

pub(super) async fn all_aside(
    session: &Session,
    series: &SeriesName,
    after: Option<&(ScopeKey, u64)>,
    limit: usize,
) -> Result<Vec<SetAside>, Failed> {
    let sql = "SELECT scope, position FROM bates.aside WHERE series = $1 AND (scope, position) > ($2, $3)
               ORDER BY scope, position LIMIT $4";
    // No scope is smaller than the empty one, and no position than 0.
    let (scope, position) = after.map_or(("", -1), |(scope, position)| (scope.as_str(), integer(*position)));
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        (&series.as_str(), Type::TEXT),
        (&scope, Type::TEXT),
        (&position, Type::INT8),
        (&bounded(limit), Type::INT8),
    ];
    let mut page = Vec::new();
    for row in session.query_typed(sql, &parameters).await? {
        SetAside::add(&mut page, row.get(0), whole(&row, 1));
    }
    Ok(page)
}

pub(super) async fn kept(
    session: &Session,
    after: Option<Uuid>,
    limit: usize,
    bytes: usize,
) -> Result<Vec<Kept>, Failed> {
    let sql = format!(
        "SELECT {}, body, is_claimed FROM (
             SELECT *, sum(coalesce(octet_length(body), 0)) OVER (ORDER BY event)
                 - coalesce(octet_length(body), 0) AS before
             FROM (
                 SELECT * FROM bates.document WHERE $1::uuid IS NULL OR event > $1 ORDER BY event LIMIT $2
             ) AS page
         ) AS fitting WHERE before < $3 ORDER BY event",
        list::COLUMNS
    );
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&after, Type::UUID), (&bounded(limit), Type::INT8), (&bounded(bytes.max(1)), Type::INT8)];
    let rows = session.query_typed(&sql, &parameters).await?;
    let read = |row: &Row| {
        let mut document = list::read(row);
        if row.get("is_claimed") {
            document.due = Some(Timestamp::UNIX_EPOCH);
            document.in_doubt = true;
        }
        Kept { document, body: row.get::<_, Option<&str>>("body").map(Into::into) }
    };
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn requests(
    session: &Session,
    after: Option<&Request>,
    limit: usize,
) -> Result<Vec<Request>, Failed> {
    let caller = after.map(|after| &*after.idempotency.caller);
    let series = after.map(|after| after.place.series.as_str());
    let key = after.map(|after| &*after.idempotency.key);
    let parameters: [(&(dyn ToSql + Sync), Type); 4] =
        [(&caller, Type::TEXT), (&series, Type::TEXT), (&key, Type::TEXT), (&bounded(limit), Type::INT8)];
    session.query_typed(REQUESTS, &parameters).await?.iter().map(request).collect()
}

/// A key whose document somebody has removed by hand stands for nothing that could be copied. Without it the same
/// request would get a second number, so it is told rather than left behind.
fn request(row: &Row) -> Result<Request, Failed> {
    let text = |column: usize| row.get::<_, &str>(column).into();
    let (scope, number) = (row.get::<_, Option<&str>>(1), row.get::<_, Option<&str>>(7));
    let digest = row.get::<_, &[u8]>(4).try_into().ok();
    let pruned_as = State::named(row.get(8));
    let (Some(scope), Some(number), Some(digest), Some(pruned_as)) = (scope, number, digest, pruned_as)
    else {
        let (series, key): (&str, &str) = (row.get(0), row.get(3));
        let told = format!("what idempotency key {key:?} of series {series:?} stands for is lost");
        return Err(StoreError::Unavailable(told.into()).into());
    };
    Ok(Request {
        place: Place {
            series: row.get::<_, &str>(0).parse().expect("only names were written"),
            scope: ScopeKey::from_store(scope),
        },
        idempotency: Idempotency { caller: text(2), key: text(3), digest },
        event: row.get(5),
        position: whole(row, 6),
        number: number.into(),
        pruned_as,
    })
}
