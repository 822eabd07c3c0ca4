//! Opening a database: which servers are refused, and which roles may create the tables.

use bates_core::GrantPurpose;
use bates_core::store::prelude::*;
use bates_postgres::{Address, OpenError, OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::{connect, database, open_store, pin_series, request};

async fn open(url: &str, mode: OpenMode) -> Result<PostgresStore, OpenError> {
    open_store(url, Settings::default(), mode).await
}

/// Changes a setting of the server or the role, and makes the server reload its configuration.
async fn set(server: &PrivatePostgres, sql: &str) {
    let client = connect(&server.url()).await;
    client.batch_execute(sql).await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_could_repeat_a_number_are_refused_by_name() {
    let server = PrivatePostgres::start().unwrap();
    let running = open(&server.url(), OpenMode::New).await.unwrap();
    pin_series(&running).await;
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
        // The server reloads its configuration some time later.
        let refused = loop {
            if let Err(error) = open(&server.url(), OpenMode::Existing).await {
                break error;
            }
        };
        assert!(matches!(&refused, OpenError::Unsafe { setting, .. } if *setting == named), "{refused}");
        assert!(refused.to_string().contains(&format!("{named} = off")), "{refused}");
        if named != "synchronous_commit" {
            assert!(
                running.grant(request("a", 1, GrantPurpose::HandOut)).await.is_err(),
                "{named}: a running node stops granting, too"
            );
        }
        set(&server, good).await;
        while open(&server.url(), OpenMode::Existing).await.is_err() {}
    }
    assert!(
        running.grant(request("a", 1, GrantPurpose::HandOut)).await.is_ok(),
        "the node recovers by itself"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_synchronous_and_read_committed_whatever_the_database_sets() {
    let server = PrivatePostgres::start().unwrap();
    let url = server.url();
    let store = open(&url, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    // The trigger sees the settings inside each transaction that moves a cursor.
    let spy = "CREATE TABLE seen (setting text);
        CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen VALUES (current_setting('synchronous_commit') || ' ' || current_setting('transaction_isolation'));
            RETURN NEW; END $$;
        CREATE TRIGGER spy BEFORE INSERT OR UPDATE ON bates.cursor FOR EACH ROW EXECUTE FUNCTION spy();
        ALTER DATABASE postgres SET synchronous_commit = local;
        ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'";
    let client = connect(&url).await;
    client.batch_execute(spy).await.unwrap();
    let reopened = open(&url, OpenMode::Existing).await.unwrap();
    reopened.grant(request("a", 1, GrantPurpose::Hold)).await.unwrap();
    let seen = client.query("SELECT DISTINCT setting FROM seen", &[]).await.unwrap();
    let seen: Vec<String> = seen.iter().map(|row| row.get(0)).collect();
    assert_eq!(seen, ["on read committed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_a_store_is_refused_unless_opened_as_new() {
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
        assert_eq!(node.await.unwrap(), Ok(()), "ten nodes create the store at once");
    }
    assert!(open(&server.url(), OpenMode::Existing).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_plan_can_be_applied_by_hand_and_serving_needs_no_right_to_create_tables() {
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
    let plan = PostgresStore::migration_plan(&Address::parse(&as_clerk).unwrap(), Settings::default())
        .await
        .unwrap();
    client.batch_execute(&plan.expect("there is no store")).await.unwrap();
    client
        .batch_execute(
            "GRANT USAGE ON SCHEMA bates TO clerk;
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA bates TO clerk",
        )
        .await
        .unwrap();
    let store = open(&as_clerk, OpenMode::Existing).await.unwrap();
    pin_series(&store).await;
    assert_eq!(store.grant(request("a", 1, GrantPurpose::Issue)).await.unwrap().range.from(), 1);
    for found in [999, 13] {
        client.batch_execute(&format!("UPDATE bates.migration SET version = {found}")).await.unwrap();
        let refused = open(&url, OpenMode::New).await.err();
        assert_eq!(refused, Some(OpenError::OtherVersion { found, needed: 16 }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_reported_without_its_password() {
    let url = "postgres://bates:hunter2@127.0.0.1:1/numbers";
    let settings = Settings { timeout: std::time::Duration::from_secs(3), ..Settings::default() };
    let refused = open_store(url, settings, OpenMode::Existing).await.err().unwrap();
    let shown = format!("{refused} {refused:?}");
    assert!(shown.contains("refused") && !shown.contains("hunter2"), "{shown}");
}

/// Every column of the store, with its type and default.
async fn columns(url: &str) -> Vec<String> {
    let sql = "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default)
               FROM information_schema.columns WHERE table_schema = 'bates' ORDER BY 1";
    connect(url).await.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_each_earlier_version_is_refused_until_it_is_migrated() {
    let server = PrivatePostgres::start().unwrap();
    let created = database(&server, "created").await;
    drop(open(&created, OpenMode::New).await.unwrap());
    for (version, schema) in [(14, include_str!("schema_14.sql"))] {
        let url = database(&server, &format!("version_{version}")).await;
        let client = connect(&url).await;
        client.batch_execute(schema).await.unwrap();
        let row = format!("INSERT INTO bates.migration (version) VALUES ({version})");
        client.batch_execute(&row).await.unwrap();
        let refused = open(&url, OpenMode::Existing).await.err().unwrap();
        assert!(
            matches!(refused, OpenError::OlderVersion { found, .. } if found == version)
                && refused.to_string().contains("bates migrate"),
            "{refused}"
        );
        let address = Address::parse(&url).unwrap();
        for is_first in [true, false] {
            let plan = PostgresStore::migration_plan(&address, Settings::default()).await.unwrap();
            assert_eq!(plan.is_some(), is_first);
            assert!(!PostgresStore::migrate(&address, Settings::default()).await.unwrap(), "it is not new");
        }
        assert_eq!(columns(&url).await, columns(&created).await, "version {version}");
        let store = open(&url, OpenMode::Existing).await.unwrap();
        pin_series(&store).await;
        assert_eq!(store.grant(request("a", 1, GrantPurpose::Issue)).await.unwrap().range.from(), 1);
        client.batch_execute("UPDATE bates.migration SET version = 999").await.unwrap();
        let refused = open(&url, OpenMode::Existing).await.err().unwrap();
        assert!(matches!(refused, OpenError::OtherVersion { found: 999, .. }), "{refused}");
    }
}
