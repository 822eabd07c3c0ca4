//! A database restored from an old backup, or failed over to a standby that lagged. No node issues from it
//! until an operator has accepted it.

use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{
    GapReason, GrantError, GrantPurpose, MissingRange, ReleaseOutcome, ReleaseRequest, StoreError,
};
use bates_postgres::{OpenError, OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::{connect, open_store, pin_series, request, scope_id};

async fn node(server: &PrivatePostgres, mode: OpenMode) -> Result<PostgresStore, OpenError> {
    open_store(&server.url(), Settings::default(), mode).await
}

async fn refusal(store: &PostgresStore) -> String {
    match store.grant(request("a", 10, GrantPurpose::HandOut)).await {
        Err(GrantError::Store(StoreError::Poisoned(reason))) => reason.into(),
        other => panic!("{other:?}"),
    }
}

/// Copies the tables and puts the copies back: what a running node sees of a restore.
const BACKUP: &str = "CREATE SCHEMA backup;
    CREATE TABLE backup.cursor AS TABLE bates.cursor; CREATE TABLE backup.last_commit AS TABLE bates.last_commit;
    CREATE TABLE backup.lease AS TABLE bates.held_range";
const RESTORE: &str = "BEGIN; TRUNCATE bates.cursor, bates.last_commit, bates.held_range;
    INSERT INTO bates.cursor TABLE backup.cursor; INSERT INTO bates.last_commit TABLE backup.last_commit;
    INSERT INTO bates.held_range TABLE backup.lease; COMMIT";

#[tokio::test(flavor = "multi_thread")]
async fn a_node_notices_that_a_restored_database_lacks_its_commits_and_stops_all_nodes() {
    let server = PrivatePostgres::start().unwrap();
    let (one, other) =
        (node(&server, OpenMode::New).await.unwrap(), node(&server, OpenMode::Existing).await.unwrap());
    pin_series(&one).await;
    one.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    other.grant(request("b", 10, GrantPurpose::HandOut)).await.unwrap();
    let client = connect(&server.url()).await;
    client.batch_execute(BACKUP).await.unwrap();
    let lost = one.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    client.batch_execute(RESTORE).await.unwrap();
    let reason = refusal(&one).await;
    assert!(reason.contains("lacks what this node committed") && reason.contains("bates floor"), "{reason}");
    assert!(refusal(&other).await.contains("lacks what this node committed"), "the other node refuses, too");
    assert!(matches!(one.probe().await, Err(StoreError::Poisoned(_))), "the node is not ready");
    assert!(matches!(node(&server, OpenMode::Existing).await, Err(OpenError::Stopped(_))));
    let operator = node(&server, OpenMode::Stopped).await.unwrap();
    let moved = operator.mark().await;
    assert!(matches!(moved, Err(StoreError::Poisoned(_))), "a stopped store cannot be moved: {moved:?}");
    operator.raise_floor(scope_id("a"), lost.range.to(), None).await.unwrap();
    operator.accept(None).await.unwrap();
    assert_eq!(operator.mark().await, Ok(None));
    let granted = one.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    assert_eq!(granted.range.from(), lost.range.to(), "the node continues by itself, above the floor");
    other.grant(request("b", 10, GrantPurpose::HandOut)).await.unwrap();
}

/// A node sees that commits are missing, and an operator accepts the database before the node has stopped it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_node_does_not_stop_a_database_that_was_accepted_meanwhile() {
    let server = PrivatePostgres::start().unwrap();
    let store = Arc::new(node(&server, OpenMode::New).await.unwrap());
    pin_series(&store).await;
    let client = connect(&server.url()).await;
    client.batch_execute(BACKUP).await.unwrap();
    store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    client.batch_execute(RESTORE).await.unwrap();
    client.batch_execute("BEGIN; UPDATE bates.store SET acceptances = acceptances + 1").await.unwrap();
    let watching = tokio::spawn({
        let store = store.clone();
        async move { store.check_revision().await }
    });
    let other = connect(&server.url()).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!watching.is_finished(), "the node has to stop the database first");
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert!(matches!(watching.await.unwrap(), Err(StoreError::Poisoned(_))), "the node saw missing commits");
    let stopped = client.query_one("SELECT stopped FROM bates.store", &[]).await.unwrap();
    assert_eq!(stopped.get::<_, Option<String>>(0), None, "the operator had accepted the loss");
    store.check_revision().await.unwrap();
    store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
}

/// The backup is older than the acceptance, so the count of acceptances goes back. That is not a new
/// acceptance.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_to_a_backup_from_before_an_acceptance_is_noticed() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    let client = connect(&server.url()).await;
    client.batch_execute(BACKUP).await.unwrap();
    store.accept(None).await.unwrap();
    let lost = store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    client.batch_execute(RESTORE).await.unwrap();
    client.batch_execute("UPDATE bates.store SET acceptances = 0").await.unwrap();
    let reason = refusal(&store).await;
    assert!(reason.contains("lacks what this node committed"), "{reason}");
    store.raise_floor(scope_id("a"), lost.range.to(), None).await.unwrap();
    store.accept(None).await.unwrap();
    let granted = store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    assert_eq!(granted.range.from(), lost.range.to(), "above the floor");
}

/// The restored database grants the range of an idle node again, with the same version.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_a_range_from_before_a_restore_does_not_move_the_cursor() {
    let server = PrivatePostgres::start().unwrap();
    let idle = node(&server, OpenMode::New).await.unwrap();
    pin_series(&idle).await;
    let client = connect(&server.url()).await;
    client.batch_execute(BACKUP).await.unwrap();
    let held = idle.grant(request("a", 32, GrantPurpose::Hold)).await.unwrap();
    client.batch_execute(RESTORE).await.unwrap();
    let era = idle.era();
    let busy = node(&server, OpenMode::Existing).await.unwrap();
    busy.accept(None).await.unwrap();
    assert_eq!(
        busy.grant(request("a", 32, GrantPurpose::Hold)).await,
        Ok(held.clone()),
        "the idle node had issued none of it"
    );
    let release =
        ReleaseRequest { scope_id: scope_id("a"), range: held.range, version: held.version, lost: vec![] };
    assert_eq!(idle.release(release).await, Ok(ReleaseOutcome::Gap));
    assert_ne!(idle.era(), era, "the idle node must not issue from its range");
    let next = busy.grant(request("a", 32, GrantPurpose::Hold)).await.unwrap();
    assert_eq!(next.range.from(), held.range.to());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_timeline_is_refused_until_it_is_accepted() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    let client = connect(&server.url()).await;
    client.batch_execute("UPDATE bates.store SET timeline = timeline + 1").await.unwrap();
    let reason = refusal(&store).await;
    assert!(reason.contains("timeline 1") && reason.contains("timeline 2"), "{reason}");
    assert!(matches!(node(&server, OpenMode::New).await, Err(OpenError::Stopped(_))));
    let operator = node(&server, OpenMode::Stopped).await.unwrap();
    assert_eq!(operator.accept(None).await, Ok(1));
    assert_eq!(store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap().range.from(), 11);
}

/// A node that has just started cannot know which commits are missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_dump_restored_into_another_database_or_cluster_is_refused_until_accepted() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    drop(store);
    let client = connect(&server.url()).await;
    for change in ["database = database + 1", "cluster = cluster + 1"] {
        client.batch_execute(&format!("UPDATE bates.store SET {change}")).await.unwrap();
        let refused = node(&server, OpenMode::Existing).await.err().unwrap().to_string();
        assert!(refused.contains("restored elsewhere") && refused.contains("bates floor"), "{refused}");
        node(&server, OpenMode::Stopped).await.unwrap().accept(None).await.unwrap();
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
    let refused =
        open_store(&other, Settings::default(), OpenMode::Existing).await.err().unwrap().to_string();
    assert!(refused.contains("restored elsewhere"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_without_access_to_pg_control_system_can_serve() {
    let server = PrivatePostgres::start().unwrap();
    let client = connect(&server.url()).await;
    let restrict = "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC;
                    CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain;
                    ALTER ROLE plain SET statement_timeout = '500ms'";
    client.batch_execute(restrict).await.unwrap();
    let url = server.url().replace("postgres@", "plain@");
    let store = open_store(&url, Settings::default(), OpenMode::New).await.unwrap();
    pin_series(&store).await;
    // The grant waits longer for the lock than the statement timeout of the role.
    client.batch_execute("BEGIN; LOCK TABLE bates.cursor IN EXCLUSIVE MODE").await.unwrap();
    let granting = tokio::spawn(async move { store.grant(request("a", 1, GrantPurpose::HandOut)).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                   AND now() - query_start > interval '700 milliseconds'";
    let other = connect(&server.url()).await;
    while other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!granting.is_finished(), "the statement timeout of the role ended the grant");
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert!(granting.await.unwrap().is_ok());
    assert!(open_store(&url, Settings::default(), OpenMode::Existing).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_moved_back_by_hand_is_noticed_from_recorded_ranges() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    let client = connect(&server.url()).await;
    for purpose in [GrantPurpose::Hold, GrantPurpose::Pool, GrantPurpose::Issue] {
        let granted = store.grant(request("a", 10, purpose)).await.unwrap();
        let back = format!("UPDATE bates.cursor SET next = {}", granted.range.from());
        client.batch_execute(&back).await.unwrap();
        let refused = store.grant(request("a", 10, purpose)).await;
        assert!(
            matches!(refused, Err(GrantError::Store(StoreError::Poisoned(_)))),
            "{purpose:?}: {refused:?}"
        );
        store.raise_floor(scope_id("a"), granted.range.to(), None).await.unwrap();
        store.accept(None).await.unwrap();
    }
    assert_eq!(store.grant(request("a", 10, GrantPurpose::Issue)).await.unwrap().range.from(), 31);
}

#[tokio::test(flavor = "multi_thread")]
async fn emptied_tables_are_not_taken_for_a_new_store() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    connect(&server.url()).await.batch_execute("DELETE FROM bates.store").await.unwrap();
    assert!(store.grant(request("a", 10, GrantPurpose::HandOut)).await.is_err());
    for mode in [OpenMode::New, OpenMode::Existing, OpenMode::Stopped] {
        assert_eq!(node(&server, mode).await.err(), Some(OpenError::Emptied), "{mode:?}");
    }
}

/// Fault 11: the standby lacks the last commits of the primary, and is promoted all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_that_lagged_issues_nothing_until_it_is_accepted() {
    let mut primary = PrivatePostgres::start().unwrap();
    let store = node(&primary, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    let mut standby = primary.start_standby().unwrap();
    let on_standby = connect(&standby.url()).await;
    // The standby stops receiving changes.
    on_standby.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await.unwrap();
    on_standby.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let receivers = "SELECT count(*) FROM pg_stat_wal_receiver";
    while on_standby.query_one(receivers, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
    let lost = store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    primary.kill().unwrap();
    on_standby.query_one("SELECT pg_promote()", &[]).await.unwrap();
    drop(on_standby);
    standby.take_over(&primary).unwrap();
    let reason = refusal(&store).await;
    assert!(reason.contains("timeline 1") && reason.contains("timeline 2"), "{reason}");
    assert!(matches!(node(&standby, OpenMode::Existing).await, Err(OpenError::Stopped(_))));
    let operator = node(&standby, OpenMode::Stopped).await.unwrap();
    let cursor = operator.cursor(scope_id("a")).await.unwrap().unwrap();
    assert_eq!(cursor.next, lost.range.from(), "without the stop, these positions would be issued again");
    operator.raise_floor(scope_id("a"), lost.range.to(), None).await.unwrap();
    operator.accept(None).await.unwrap();
    let granted = store.grant(request("a", 10, GrantPurpose::HandOut)).await.unwrap();
    assert_eq!(granted.range.from(), lost.range.to(), "above the floor");
}

/// An acceptance makes every node give up its ranges; a floor concerns only its own scope.
#[tokio::test(flavor = "multi_thread")]
async fn an_acceptance_makes_held_ranges_uncertain_in_every_scope_but_a_floor_does_not() {
    let server = PrivatePostgres::start().unwrap();
    let store = node(&server, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    let held = store.grant(request("b", 10, GrantPurpose::Hold)).await.unwrap().range;
    let held_and_lost = async || {
        let all = store.scope_positions(scope_id("b").series, None, 10).await.unwrap();
        let reconciliation = all.into_iter().find(|(scope, _)| *scope == scope_id("b").scope).unwrap().1;
        (reconciliation.held, reconciliation.lost)
    };
    store.raise_floor(scope_id("a"), 500, None).await.unwrap();
    assert_eq!(held_and_lost().await, (vec![held], vec![]), "the range is still held");
    store.accept(None).await.unwrap();
    let uncertain = MissingRange { range: held, reason: GapReason::CrashSkip };
    assert_eq!(held_and_lost().await, (vec![], vec![uncertain]), "how much of it was issued is unknown");
}
