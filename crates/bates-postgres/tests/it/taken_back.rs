//! A database that was taken back: restored from an old backup, or failed over to a standby that lagged. No node
//! issues from it until an operator has accepted it.

use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{
    GapReason, GrantError, GrantPurpose, MissingRange, ReleaseOutcome, ReleaseRequest, StoreError,
};
use bates_postgres::{OpenError, OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::{connect, opened, pinned, scope_id, want};

async fn node(server: &PrivatePostgres, opening: OpenMode) -> Result<PostgresStore, OpenError> {
    opened(&server.url(), Settings::default(), opening).await
}

async fn refusal(store: &PostgresStore) -> String {
    match store.grant(want("a", 10, GrantPurpose::HandOut)).await {
        Err(GrantError::Store(StoreError::Poisoned(reason))) => reason.into(),
        other => panic!("{other:?}"),
    }
}

/// All tables as they are now, and back again: what a restore does to a node that runs on.
const BACKUP: &str = "CREATE SCHEMA backup;
    CREATE TABLE backup.cursor AS TABLE bates.cursor; CREATE TABLE backup.last_commit AS TABLE bates.last_commit;
    CREATE TABLE backup.lease AS TABLE bates.held_range";
const RESTORE: &str = "BEGIN; TRUNCATE bates.cursor, bates.last_commit, bates.held_range;
    INSERT INTO bates.cursor TABLE backup.cursor; INSERT INTO bates.last_commit TABLE backup.last_commit;
    INSERT INTO bates.held_range TABLE backup.lease; COMMIT";

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_is_noticed_by_whoever_committed_to_it_and_stops_all_nodes() {
    let server = PrivatePostgres::start().unwrap();
    let (one, other) =
        (node(&server, OpenMode::New).await.unwrap(), node(&server, OpenMode::Existing).await.unwrap());
    pinned(&one).await;
    one.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    other.grant(want("b", 10, GrantPurpose::HandOut)).await.unwrap();
    let client = connect(&server.url()).await;
    client.batch_execute(BACKUP).await.unwrap();
    let lost = one.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    client.batch_execute(RESTORE).await.unwrap();
    let reason = refusal(&one).await;
    assert!(reason.contains("lacks what this node committed") && reason.contains("bates floor"), "{reason}");
    assert!(refusal(&other).await.contains("lacks what this node committed"), "others are told, too");
    assert!(matches!(one.probe().await, Err(StoreError::Poisoned(_))), "and are not ready");
    assert!(matches!(node(&server, OpenMode::Existing).await, Err(OpenError::Stopped(_))));
    let operator = node(&server, OpenMode::Stopped).await.unwrap();
    let moved = operator.mark().await;
    assert!(matches!(moved, Err(StoreError::Poisoned(_))), "nor does it move elsewhere: {moved:?}");
    operator.raise_floor(scope_id("a"), lost.range.to()).await.unwrap();
    operator.accept().await.unwrap();
    assert_eq!(operator.mark().await, Ok(None));
    let granted = one.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    assert_eq!(granted.range.from(), lost.range.to(), "nodes go on by themselves, above the floor");
    other.grant(want("b", 10, GrantPurpose::HandOut)).await.unwrap();
}

/// A node sees what is missing, and an operator accepts the database before the node has said so.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_late_does_not_stop_a_database_that_was_accepted_meanwhile() {
    let server = PrivatePostgres::start().unwrap();
    let store = Arc::new(node(&server, OpenMode::New).await.unwrap());
    pinned(&store).await;
    let client = connect(&server.url()).await;
    client.batch_execute(BACKUP).await.unwrap();
    store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    client.batch_execute(RESTORE).await.unwrap();
    client.batch_execute("BEGIN; UPDATE bates.store SET acceptances = acceptances + 1").await.unwrap();
    let watching = tokio::spawn({
        let store = store.clone();
        async move { store.check_revision().await }
    });
    let other = connect(&server.url()).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!watching.is_finished(), "it has to say that commits are missing");
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert!(matches!(watching.await.unwrap(), Err(StoreError::Poisoned(_))), "as it saw the database");
    let stopped = client.query_one("SELECT stopped FROM bates.store", &[]).await.unwrap();
    assert_eq!(stopped.get::<_, Option<String>>(0), None, "the operator has accepted what it saw");
    store.check_revision().await.unwrap();
    store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
}

/// A backup knows nothing of an acceptance that came after it; that it is gone is no acceptance.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_taken_back_behind_an_acceptance_is_noticed() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pinned(&store).await;
    let client = connect(&server.url()).await;
    client.batch_execute(BACKUP).await.unwrap();
    store.accept().await.unwrap();
    let lost = store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    client.batch_execute(RESTORE).await.unwrap();
    client.batch_execute("UPDATE bates.store SET acceptances = 0").await.unwrap();
    let reason = refusal(&store).await;
    assert!(reason.contains("lacks what this node committed"), "{reason}");
    store.raise_floor(scope_id("a"), lost.range.to()).await.unwrap();
    store.accept().await.unwrap();
    let granted = store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    assert_eq!(granted.range.from(), lost.range.to(), "above the floor");
}

/// The node holds a lease that the restored database grants again, in a write of the same version.
#[tokio::test(flavor = "multi_thread")]
async fn a_tail_of_before_a_restore_does_not_move_the_cursor_of_those_behind_it() {
    let server = PrivatePostgres::start().unwrap();
    let idle = node(&server, OpenMode::New).await.unwrap();
    pinned(&idle).await;
    let client = connect(&server.url()).await;
    client.batch_execute(BACKUP).await.unwrap();
    let held = idle.grant(want("a", 32, GrantPurpose::Hold)).await.unwrap();
    client.batch_execute(RESTORE).await.unwrap();
    let era = idle.era();
    let busy = node(&server, OpenMode::Existing).await.unwrap();
    busy.accept().await.unwrap();
    assert_eq!(
        busy.grant(want("a", 32, GrantPurpose::Hold)).await,
        Ok(held.clone()),
        "nothing of it was issued before"
    );
    let tail =
        ReleaseRequest { scope_id: scope_id("a"), range: held.range, version: held.version, lost: vec![] };
    assert_eq!(idle.release(tail).await, Ok(ReleaseOutcome::Gap));
    assert_ne!(idle.era(), era, "nor may anything of it be handed out");
    let next = busy.grant(want("a", 32, GrantPurpose::Hold)).await.unwrap();
    assert_eq!(next.range.from(), held.range.to());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_timeline_is_refused_until_it_is_accepted() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pinned(&store).await;
    store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    let client = connect(&server.url()).await;
    client.batch_execute("UPDATE bates.store SET timeline = timeline + 1").await.unwrap();
    let reason = refusal(&store).await;
    assert!(reason.contains("timeline 1") && reason.contains("timeline 2"), "{reason}");
    assert!(matches!(node(&server, OpenMode::New).await, Err(OpenError::Stopped(_))));
    let operator = node(&server, OpenMode::Stopped).await.unwrap();
    assert_eq!(operator.accept().await, Ok(1));
    assert_eq!(store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap().range.from(), 11);
}

/// A node that has not run before knows nothing of what is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_dump_that_was_restored_into_another_database_or_cluster_is_refused_until_it_is_accepted() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pinned(&store).await;
    drop(store);
    let client = connect(&server.url()).await;
    for change in ["database = database + 1", "cluster = cluster + 1"] {
        client.batch_execute(&format!("UPDATE bates.store SET {change}")).await.unwrap();
        let refused = node(&server, OpenMode::Existing).await.err().unwrap().to_string();
        assert!(refused.contains("restored elsewhere") && refused.contains("bates floor"), "{refused}");
        node(&server, OpenMode::Stopped).await.unwrap().accept().await.unwrap();
        node(&server, OpenMode::Existing).await.unwrap();
    }
    let other = super::database(&server, "other").await;
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.sql");
    let run = |program: &str, arguments: &[&str]| {
        let program = bates_testkit::programs::find(program).unwrap();
        let output = std::process::Command::new(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run("pg_dump", &["--file", dump.to_str().unwrap(), &server.url()]);
    run("psql", &["--quiet", "--no-psqlrc", "--file", dump.to_str().unwrap(), &other]);
    let refused = opened(&other, Settings::default(), OpenMode::Existing).await.err().unwrap().to_string();
    assert!(refused.contains("restored elsewhere"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_ask_for_the_cluster_is_served_all_the_same() {
    let server = PrivatePostgres::start().unwrap();
    let client = connect(&server.url()).await;
    let restrict = "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC;
                    CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain;
                    ALTER ROLE plain SET statement_timeout = '500ms'";
    client.batch_execute(restrict).await.unwrap();
    let url = server.url().replace("postgres@", "plain@");
    let store = opened(&url, Settings::default(), OpenMode::New).await.unwrap();
    pinned(&store).await;
    // Its statements wait longer for the lock than the role allows.
    client.batch_execute("BEGIN; LOCK TABLE bates.cursor IN EXCLUSIVE MODE").await.unwrap();
    let granting = tokio::spawn(async move { store.grant(want("a", 1, GrantPurpose::HandOut)).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                   AND now() - query_start > interval '700 milliseconds'";
    let other = connect(&server.url()).await;
    while other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!granting.is_finished(), "the time limit of the role ended it");
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert!(granting.await.unwrap().is_ok());
    assert!(opened(&url, Settings::default(), OpenMode::Existing).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_somebody_moved_back_is_noticed_by_what_was_written_down() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pinned(&store).await;
    let client = connect(&server.url()).await;
    for purpose in [GrantPurpose::Hold, GrantPurpose::Pool, GrantPurpose::Issue] {
        let granted = store.grant(want("a", 10, purpose)).await.unwrap();
        let back = format!("UPDATE bates.cursor SET next = {}", granted.range.from());
        client.batch_execute(&back).await.unwrap();
        let refused = store.grant(want("a", 10, purpose)).await;
        assert!(
            matches!(refused, Err(GrantError::Store(StoreError::Poisoned(_)))),
            "{purpose:?}: {refused:?}"
        );
        store.raise_floor(scope_id("a"), granted.range.to()).await.unwrap();
        store.accept().await.unwrap();
    }
    assert_eq!(store.grant(want("a", 10, GrantPurpose::Issue)).await.unwrap().range.from(), 31);
}

#[tokio::test(flavor = "multi_thread")]
async fn emptied_tables_are_no_first_start() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pinned(&store).await;
    connect(&server.url()).await.batch_execute("DELETE FROM bates.store").await.unwrap();
    assert!(store.grant(want("a", 10, GrantPurpose::HandOut)).await.is_err());
    for opening in [OpenMode::New, OpenMode::Existing, OpenMode::Stopped] {
        assert_eq!(node(&server, opening).await.err(), Some(OpenError::Emptied), "{opening:?}");
    }
}

/// Fault 11: the standby has not got the last commits when the primary is gone, and is promoted all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_lagged_and_was_promoted_issues_nothing_until_it_is_accepted() {
    let mut primary = PrivatePostgres::start().unwrap();
    let store = node(&primary, OpenMode::New).await.unwrap();
    pinned(&store).await;
    store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    let mut standby = primary.start_standby().unwrap();
    let following = connect(&standby.url()).await;
    // From here on it gets nothing any more.
    following.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await.unwrap();
    following.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let receivers = "SELECT count(*) FROM pg_stat_wal_receiver";
    while following.query_one(receivers, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
    let lost = store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    primary.kill().unwrap();
    following.query_one("SELECT pg_promote()", &[]).await.unwrap();
    drop(following);
    standby.take_over(&primary).unwrap();
    let reason = refusal(&store).await;
    assert!(reason.contains("timeline 1") && reason.contains("timeline 2"), "{reason}");
    assert!(matches!(node(&standby, OpenMode::Existing).await, Err(OpenError::Stopped(_))));
    let operator = node(&standby, OpenMode::Stopped).await.unwrap();
    let cursor = operator.cursor(scope_id("a")).await.unwrap().unwrap();
    assert_eq!(cursor.next, lost.range.from(), "what it would have issued again");
    operator.raise_floor(scope_id("a"), lost.range.to()).await.unwrap();
    operator.accept().await.unwrap();
    let granted = store.grant(want("a", 10, GrantPurpose::HandOut)).await.unwrap();
    assert_eq!(granted.range.from(), lost.range.to(), "above the floor");
}

/// An acceptance makes every node give up all that it holds.
#[tokio::test(flavor = "multi_thread")]
async fn what_nodes_give_up_for_an_acceptance_is_explained_in_every_scope_and_a_floor_concerns_no_other() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pinned(&store).await;
    let held = store.grant(want("b", 10, GrantPurpose::Hold)).await.unwrap().range;
    let account = async || {
        let accounts = store.reconciliations(scope_id("b").series, None, 10).await.unwrap();
        let account = accounts.into_iter().find(|(scope, _)| *scope == scope_id("b").scope).unwrap().1;
        (account.held, account.lost)
    };
    store.raise_floor(scope_id("a"), 500).await.unwrap();
    assert_eq!(account().await, (vec![held], vec![]), "it is still held");
    store.accept().await.unwrap();
    let uncertain = MissingRange { range: held, reason: GapReason::CrashSkip };
    assert_eq!(account().await, (vec![], vec![uncertain]), "what was handed out of it is not known");
}
