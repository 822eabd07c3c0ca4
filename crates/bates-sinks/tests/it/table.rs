//! Documents as rows in a real PostgreSQL.

use bates_core::{Delivery, Sink};
use bates_testkit::PrivatePostgres;
use serde_json::json;
use tokio_postgres::{Client, NoTls};

use super::{delivery, is_refused, is_unavailable, open_sink};

const TABLE: &str = "CREATE SCHEMA archive; CREATE TABLE archive.documents (event uuid PRIMARY KEY, \
    series text NOT NULL, scope text NOT NULL, position bigint NOT NULL, number text NOT NULL, \
    document jsonb NOT NULL, created_at timestamptz NOT NULL)";

/// Connects without Bates.
async fn connect(server: &PrivatePostgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn sink(server: &PrivatePostgres, timeout_ms: u64) -> Box<dyn Sink> {
    let settings = json!({"url": server.url(), "table": "archive.documents", "timeout_ms": timeout_ms});
    open_sink(&json!({"postgres": settings})).unwrap()
}

fn documents(count: u64) -> Vec<Delivery> {
    (0..count).map(|at| delivery(at, &json!({"at": at}).to_string())).collect()
}

async fn count(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM archive.documents", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_document_is_one_row_however_often_it_is_delivered() {
    let server = PrivatePostgres::start().unwrap();
    let client = connect(&server).await;
    client.batch_execute(TABLE).await.unwrap();
    let sink = sink(&server, 10_000);
    let mut batch = documents(1_000);
    // The batch contains the same document twice.
    batch.push(batch[0].clone());
    for _ in 0..2 {
        assert!(sink.deliver(&batch).await.iter().all(Result::is_ok));
        assert_eq!(count(&client).await, 1_000);
    }
    let sql = "SELECT series, scope, position, number, document::text, created_at = '2026-11-15T10:00:00Z' \
               FROM archive.documents WHERE event = $1";
    let row = client.query_one(sql, &[&batch[7].document_id]).await.unwrap();
    let texts: [&str; 4] = [row.get(0), row.get(1), row.get(3), row.get(4)];
    assert_eq!(texts, ["document", "project=PROJ type=9012", "PROJ-9012-7", r#"{"at": 7}"#]);
    assert_eq!((row.get::<_, i64>(2), row.get::<_, bool>(5)), (7, true));
    assert!(sink.deliver(&[]).await.is_empty());
}

#[tokio::test]
async fn a_document_that_the_table_refuses_blocks_no_other() {
    let server = PrivatePostgres::start().unwrap();
    let client = connect(&server).await;
    client.batch_execute(TABLE).await.unwrap();
    client.batch_execute("ALTER TABLE archive.documents ADD CHECK (document->>'at' <> '99')").await.unwrap();
    let mut batch = documents(100);
    batch[3].body = r#"{"text":"\u0000"}"#.into();
    batch[50].body = "{".into();
    let answers = sink(&server, 10_000).deliver(&batch).await;
    for (at, answer) in answers.iter().enumerate() {
        match at {
            3 | 50 | 99 => assert!(is_refused(answer), "{at} {answer:?}"),
            _ => assert_eq!(answer, &Ok(()), "{at}"),
        }
    }
    assert_eq!(count(&client).await, 97);
}

#[tokio::test]
async fn the_error_for_a_missing_table_contains_the_sql_to_create_it() {
    let server = PrivatePostgres::start().unwrap();
    let sink = sink(&server, 10_000);
    let batch = documents(3);
    let answers = sink.deliver(&batch).await;
    assert!(answers.iter().all(is_unavailable), "{answers:?}");
    let reason = answers[0].as_ref().unwrap_err().to_string();
    let (_, definition) = reason.split_once("create the table with: ").expect(&reason);
    let client = connect(&server).await;
    client.batch_execute(&format!("CREATE SCHEMA archive; {definition}")).await.unwrap();
    assert!(sink.deliver(&batch).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_database_is_unavailable_while_it_is_down() {
    let mut server = PrivatePostgres::start().unwrap();
    connect(&server).await.batch_execute(TABLE).await.unwrap();
    let sink = sink(&server, 10_000);
    let batch = documents(10);
    assert!(sink.deliver(&batch).await.iter().all(Result::is_ok));
    server.kill().unwrap();
    let answers = sink.deliver(&batch).await;
    assert!(answers.iter().all(is_unavailable), "{answers:?}");
    server.restart().unwrap();
    assert!(sink.deliver(&batch).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_locked_table_costs_a_timeout_and_no_connection() {
    let server = PrivatePostgres::start().unwrap();
    let mut client = connect(&server).await;
    client.batch_execute(TABLE).await.unwrap();
    let sink = sink(&server, 300);
    let lock = client.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE archive.documents").await.unwrap();
    // More deliveries than the pool has connections.
    for _ in 0..6 {
        assert!(sink.deliver(&documents(2)).await.iter().all(is_unavailable));
    }
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bates' AND state = 'active'";
    let waiting: i64 = lock.query_one(waiting, &[]).await.unwrap().get(0);
    assert_eq!(waiting, 0, "a session still waits for the lock");
    lock.rollback().await.unwrap();
    assert!(sink.deliver(&documents(2)).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn commits_are_synchronous_even_if_the_role_turns_that_off() {
    let server = PrivatePostgres::start().unwrap();
    let client = connect(&server).await;
    client.batch_execute(TABLE).await.unwrap();
    client
        .batch_execute(
            "ALTER ROLE postgres SET synchronous_commit = off; CREATE TABLE seen (setting text); \
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO public.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$; \
             CREATE CONSTRAINT TRIGGER note AFTER INSERT ON archive.documents DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION note()",
        )
        .await
        .unwrap();
    assert_eq!(sink(&server, 10_000).deliver(&documents(1)).await, [Ok(())]);
    let seen: String = client.query_one("SELECT setting FROM seen", &[]).await.unwrap().get(0);
    assert_eq!(seen, "on");
}
