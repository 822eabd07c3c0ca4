//! What nodes hold, given up: of that, nobody knows what they handed out. What is known already stays as it is known.

use std::collections::BTreeMap;

use bates_core::{Lease, Place, Ranges, Reason, ScopeKey};
use tokio_postgres::Error;

use super::sql::{self, whole};
use crate::session::Session;

/// What a client gave back may lie within the lease of a node.
const TAKE: &str = "
    WITH gone AS (DELETE FROM bates.lease RETURNING series, scope, first, last)
    SELECT series, scope, first, last, true FROM gone
    UNION ALL
    SELECT series, scope, first, last, false FROM bates.lost WHERE EXISTS (
        SELECT FROM gone WHERE gone.series = lost.series AND gone.scope = lost.scope
        AND lost.first <= gone.last AND lost.last >= gone.first)";

/// Every node is about to give up all that it holds.
pub(crate) async fn lose_leases(session: &Session) -> Result<(), Error> {
    let mut places: BTreeMap<Place, [Vec<Lease>; 2]> = BTreeMap::new();
    for row in session.query_typed(TAKE, &[]).await? {
        // Only names of series are in the table.
        let Ok(series) = row.get::<_, &str>(0).parse() else { continue };
        let place = Place { series, scope: ScopeKey::from_store(row.get(1)) };
        let [held, known] = places.entry(place).or_default();
        let range = Lease::new(whole(&row, 2), whole(&row, 3) + 1);
        if row.get(4) { held.extend(range) } else { known.extend(range) }
    }
    let uncertain: Vec<(&Place, Lease)> = places
        .iter()
        .flat_map(|(place, [held, known])| {
            let left = Ranges::of(held.iter().copied()).without(&Ranges::of(known.iter().copied()));
            left.iter().map(|range| (place, range)).collect::<Vec<_>>()
        })
        .collect();
    sql::write_lost(session, &uncertain, Reason::CrashSkip).await
}
