//! The cluster and database of the store: they tell a new node that a dump was restored elsewhere.

use crate::error::{Failure, OpenError};
use crate::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cluster {
    /// `None` if the role may not read it, as on some managed services.
    system: Option<i64>,
    database: i64,
}

/// Pins the cluster of a new store, and refuses a store that was pinned in another cluster.
pub(crate) async fn check(session: &Session) -> Result<(), Failure> {
    let here = current(session).await?;
    let rows = session.query("SELECT cluster, database FROM bates.store", &[]).await?;
    let row = rows.first().ok_or(Failure::Refused(OpenError::Emptied))?;
    let (system, database): (Option<i64>, Option<i64>) = (row.get(0), row.get(1));
    let Some(database) = database else { return pin(session).await };
    let pinned = Cluster { system, database };
    // An unknown system identifier, now or then, proves nothing.
    let is_other = pinned.system.zip(here.system).is_some_and(|(pinned, here)| pinned != here);
    if is_other || pinned.database != here.database {
        return Err(Failure::Refused(OpenError::Stopped(restored_elsewhere(pinned, here).into())));
    }
    Ok(())
}

pub(crate) async fn pin(session: &Session) -> Result<(), Failure> {
    let here = current(session).await?;
    let sql = "UPDATE bates.store SET cluster = $1, database = $2";
    session.query_once(sql, &[&here.system, &here.database]).await.map(drop)
}

async fn current(session: &Session) -> Result<Cluster, Failure> {
    let sql = "SELECT (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
                   has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')";
    let rows = session.query(sql, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| Failure::Transient("the database did not answer with its identity".into()))?;
    let (database, may_read_system): (i64, bool) = (row.get(0), row.get(1));
    let system = if may_read_system {
        let rows = session.query("SELECT system_identifier FROM pg_control_system()", &[]).await?;
        rows.first().map(|row| row.get(0))
    } else {
        None
    };
    Ok(Cluster { system, database })
}

fn restored_elsewhere(pinned: Cluster, here: Cluster) -> String {
    let name = |cluster: Cluster| match cluster.system {
        Some(system) => format!("database {} of cluster {system}", cluster.database),
        None => format!("database {}", cluster.database),
    };
    format!(
        "this is {}, but numbers were last issued in {}: a dump was restored elsewhere, and commits may be missing. If \
         so, raise the cursors above all issued numbers with `bates floor`. Then run `bates floor --accept-timeline`; \
         until then nothing is issued",
        name(here),
        name(pinned)
    )
}
