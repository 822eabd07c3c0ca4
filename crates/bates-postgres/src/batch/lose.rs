//! What nodes hold, counted as lost: the store does not know what they handed out of it. What is known already stays as
//! it is known.

use std::collections::BTreeMap;

use bates_core::{Lease, Missing, Place, Ranges, Reason, ScopeKey};
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use super::sql::{self, whole};
use crate::session::Session;

/// Takes leases out, by a `DELETE` that tells which, and writes them down as uncertain. What a client holds or gave back
/// may lie within the lease of a node, and is known.
pub(crate) async fn lose_leases(
    session: &Session,
    delete: &str,
    parameters: &[(&(dyn ToSql + Sync), Type)],
) -> Result<(), Error> {
    let take = format!(
        "WITH gone AS ({delete} RETURNING series, scope, first, last)
         SELECT series, scope, first, last, true FROM gone
         UNION ALL
         SELECT series, scope, first, last, false FROM bates.lost WHERE EXISTS (
             SELECT FROM gone WHERE gone.series = lost.series AND gone.scope = lost.scope
             AND lost.first <= gone.last AND lost.last >= gone.first)
         UNION ALL
         SELECT series, scope, first, last, false FROM bates.client_lease WHERE EXISTS (
             SELECT FROM gone WHERE gone.series = client_lease.series AND gone.scope = client_lease.scope
             AND client_lease.first <= gone.last AND client_lease.last >= gone.first)"
    );
    let mut places: BTreeMap<Place, [Vec<Lease>; 2]> = BTreeMap::new();
    for row in session.query_typed(&take, parameters).await? {
        // Only names of series are in the table.
        let Ok(series) = row.get::<_, &str>(0).parse() else { continue };
        let place = Place { series, scope: ScopeKey::from_store(row.get(1)) };
        let [held, known] = places.entry(place).or_default();
        let range = Lease::new(whole(&row, 2), whole(&row, 3) + 1);
        if row.get(4) { held.extend(range) } else { known.extend(range) }
    }
    let uncertain: Vec<(&Place, Missing)> = places
        .iter()
        .flat_map(|(place, [held, known])| {
            let left = Ranges::of(held.iter().copied()).without(&Ranges::of(known.iter().copied()));
            let left = Missing::all(left.iter(), Reason::CrashSkip);
            left.map(|missing| (place, missing)).collect::<Vec<_>>()
        })
        .collect();
    sql::write_lost(session, &uncertain).await
}
