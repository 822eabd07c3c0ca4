//! In which cluster and database the store is: a new node notices by it that a dump was restored elsewhere.

use crate::error::{Failed, OpenError};
use crate::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cluster {
    /// `None` where the role may not ask for it, as on some managed services.
    system: Option<i64>,
    database: i64,
}

/// Pins the cluster of a store that has none, and refuses a store that was pinned in another one.
pub(crate) async fn check(session: &Session) -> Result<(), Failed> {
    let here = ask(session).await?;
    let rows = session.query("SELECT cluster, database FROM bates.store", &[]).await?;
    let row = rows.first().ok_or(Failed::Refused(OpenError::Emptied))?;
    let (system, database): (Option<i64>, Option<i64>) = (row.get(0), row.get(1));
    let Some(database) = database else { return pin(session).await };
    let pinned = Cluster { system, database };
    // What cannot be asked now, or could not be then, proves nothing.
    let is_other = pinned.system.zip(here.system).is_some_and(|(pinned, here)| pinned != here);
    if is_other || pinned.database != here.database {
        return Err(Failed::Refused(OpenError::Stopped(told(pinned, here).into())));
    }
    Ok(())
}

pub(crate) async fn pin(session: &Session) -> Result<(), Failed> {
    let here = ask(session).await?;
    let sql = "UPDATE bates.store SET cluster = $1, database = $2";
    session.query_once(sql, &[&here.system, &here.database]).await.map(drop)
}

async fn ask(session: &Session) -> Result<Cluster, Failed> {
    let sql = "SELECT (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
                   has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')";
    let rows = session.query(sql, &[]).await?;
    let row = rows.first().ok_or_else(|| Failed::Passing("the database does not tell what it is".into()))?;
    let (database, may_ask): (i64, bool) = (row.get(0), row.get(1));
    let system = if may_ask {
        let rows = session.query("SELECT system_identifier FROM pg_control_system()", &[]).await?;
        rows.first().map(|row| row.get(0))
    } else {
        None
    };
    Ok(Cluster { system, database })
}

fn told(pinned: Cluster, here: Cluster) -> String {
    let named = |of: Cluster| match of.system {
        Some(system) => format!("database {} of cluster {system}", of.database),
        None => format!("database {}", of.database),
    };
    format!(
        "this is {}, and numbers were last issued in {}: a dump was restored elsewhere, and commits may be missing. \
         Nothing is issued. Where they are, raise the cursors above all that was issued with `bates floor`; then run \
         `bates floor --accept-timeline`",
        named(here),
        named(pinned)
    )
}
