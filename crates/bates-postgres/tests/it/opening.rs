//! Opening a database: which servers are refused, and who may make the tables.

use bates_core::GrantPurpose;
use bates_core::store::prelude::*;
use bates_postgres::{OpenError, OpenMode, PostgresStore, Settings, schema_plan};
use bates_testkit::PrivatePostgres;

use super::{connect, database, opened, pinned, want};

async fn open(url: &str, opening: OpenMode) -> Result<PostgresStore, OpenError> {
    opened(url, Settings::default(), opening).await
}

/// A setting of the server or the role, and whether it is known to those who connect from now on.
async fn set(server: &PrivatePostgres, sql: &str) {
    let client = connect(&server.url()).await;
    client.batch_execute(sql).await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_under_which_a_number_could_come_back_are_refused_by_name() {
    let server = PrivatePostgres::start().unwrap();
    let running = open(&server.url(), OpenMode::New).await.unwrap();
    pinned(&running).await;
    for (bad, good, named) in [
        ("ALTER SYSTEM SET fsync = off", "ALTER SYSTEM RESET fsync", "fsync"),
        (
            "ALTER SYSTEM SET full_page_writes = off",
            "ALTER SYSTEM RESET full_page_writes",
            "full_page_writes",
        ),
        (
            "ALTER ROLE postgres SET synchronous_commit = off",
            "ALTER ROLE postgres RESET ALL",
            "synchronous_commit",
        ),
        ("ALTER SYSTEM SET synchronous_commit = off", "ALTER SYSTEM RESET ALL", "synchronous_commit"),
    ] {
        set(&server, bad).await;
        // The server reads its configuration when it comes to it.
        let refused = loop {
            if let Err(error) = open(&server.url(), OpenMode::Existing).await {
                break error;
            }
        };
        assert!(matches!(&refused, OpenError::Unsafe { setting, .. } if *setting == named), "{refused}");
        assert!(refused.to_string().contains(&format!("{named} = off")), "{refused}");
        if named != "synchronous_commit" {
            assert!(
                running.grant(want("a", 1, GrantPurpose::HandOut)).await.is_err(),
                "{named}: nor does a node go on"
            );
        }
        set(&server, good).await;
        while open(&server.url(), OpenMode::Existing).await.is_err() {}
    }
    assert!(running.grant(want("a", 1, GrantPurpose::HandOut)).await.is_ok(), "which recovers by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_on_disk_whatever_the_session_is_set_to() {
    let server = PrivatePostgres::start().unwrap();
    let url = server.url();
    let store = open(&url, OpenMode::New).await.unwrap();
    pinned(&store).await;
    // Seen from inside each transaction that moves a cursor.
    let spy = "CREATE TABLE seen (setting text);
        CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen VALUES (current_setting('synchronous_commit') || ' ' || current_setting('transaction_isolation'));
            RETURN NEW; END $$;
        CREATE TRIGGER spy BEFORE INSERT OR UPDATE ON bates.cursor FOR EACH ROW EXECUTE FUNCTION spy();
        ALTER DATABASE postgres SET synchronous_commit = local;
        ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'";
    let client = connect(&url).await;
    client.batch_execute(spy).await.unwrap();
    let later = open(&url, OpenMode::Existing).await.unwrap();
    later.grant(want("a", 1, GrantPurpose::Hold)).await.unwrap();
    let seen = client.query("SELECT DISTINCT setting FROM seen", &[]).await.unwrap();
    let seen: Vec<String> = seen.iter().map(|row| row.get(0)).collect();
    assert_eq!(seen, ["on read committed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_a_store_is_refused_unless_one_is_to_be_made() {
    let server = PrivatePostgres::start().unwrap();
    let refused = open(&server.url(), OpenMode::Existing).await.err().unwrap();
    assert!(
        matches!(refused, OpenError::NoStore(_)) && refused.to_string().contains("bates migrate"),
        "{refused}"
    );
    let nodes: Vec<_> = (0..10)
        .map(|_| {
            let url = server.url();
            tokio::spawn(async move { open(&url, OpenMode::New).await.map(drop) })
        })
        .collect();
    for node in nodes {
        assert_eq!(node.await.unwrap(), Ok(()), "ten at once");
    }
    assert!(open(&server.url(), OpenMode::Existing).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_applied_by_hand_is_the_store_and_serving_needs_no_right_to_make_tables() {
    let server = PrivatePostgres::start().unwrap();
    let url = database(&server, "planned").await;
    let client = connect(&url).await;
    client
        .batch_execute(
            "CREATE ROLE clerk LOGIN; REVOKE CREATE ON DATABASE planned FROM public;
             REVOKE CREATE ON SCHEMA public FROM public",
        )
        .await
        .unwrap();
    let as_clerk = url.replacen("postgres@", "clerk@", 1);
    let refused = open(&as_clerk, OpenMode::New).await.err().unwrap();
    assert!(
        matches!(refused, OpenError::Migrate { .. }) && refused.to_string().contains("permission"),
        "{refused}"
    );
    client.batch_execute(&schema_plan()).await.unwrap();
    client
        .batch_execute(
            "GRANT USAGE ON SCHEMA bates TO clerk;
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA bates TO clerk",
        )
        .await
        .unwrap();
    let store = open(&as_clerk, OpenMode::Existing).await.unwrap();
    pinned(&store).await;
    assert_eq!(store.grant(want("a", 1, GrantPurpose::Issue)).await.unwrap().range.from(), 1);
    for found in [999, 12] {
        client.batch_execute(&format!("UPDATE bates.migration SET version = {found}")).await.unwrap();
        let refused = open(&url, OpenMode::New).await.err();
        assert_eq!(refused, Some(OpenError::OtherVersion { found, needed: 13 }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    let url = "postgres://bates:hunter2@127.0.0.1:1/numbers";
    let settings = Settings { patience: std::time::Duration::from_secs(3), ..Settings::default() };
    let refused = opened(url, settings, OpenMode::Existing).await.err().unwrap();
    let said = format!("{refused} {refused:?}");
    assert!(said.contains("refused") && !said.contains("hunter2"), "{said}");
}
