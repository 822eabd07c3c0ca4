//! Descriptions of sinks: valid ones, refused ones, and secrets that never show.

use bates_core::Sink;
use bates_sinks::SinkDescription;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::open_sink;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The error of a description that parses, but cannot be opened.
fn refusal(description: &Value) -> String {
    let description: SinkDescription = serde_saphyr::from_str(&description.to_string()).unwrap();
    let error = description.open().map(drop).unwrap_err();
    let shown = format!("{error} {error:?} {description:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("MfKQ9r8G"), "{shown}");
    error.to_string()
}

#[test]
fn every_sink_in_the_documentation_parses() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sinks.md")).unwrap();
    let blocks: Vec<_> =
        text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let described: Value = serde_saphyr::from_str(block).unwrap();
        serde_json::from_value::<SinkDescription>(described["sink"].clone()).expect(block);
    }
}

#[test]
fn a_description_has_exactly_one_sink_and_no_unknown_field() {
    for wrong in [
        "{}",
        "{object: {url: 'file:///a'}, webhook: {url: 'https://a', secret: b}}",
        "{object: {url: 'file:///a', secret: hunter2}}",
        "{webhook: {secret: hunter2}}",
        "{webhook: {url: 'https://a', secret: 1234567}}",
        "{webhook: {url: 'https://a', secret: [hunter2]}}",
        "{postgres: {url: 'postgres://a:hunter2@b/c'}}",
        "{pigeon: {url: hunter2}}",
    ] {
        let error = serde_saphyr::from_str::<Value>(wrong).map(serde_json::from_value::<SinkDescription>);
        let error = error.unwrap().expect_err(wrong).to_string();
        assert!(!error.contains("hunter2") && !error.contains("1234567"), "{error}");
    }
}

#[test]
fn the_refusal_of_a_webhook_names_the_wrong_field() {
    let webhook = |url: &str, more: &Value| {
        let mut described = json!({"url": url, "secret": SECRET});
        described.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        refusal(&json!({"webhook": described}))
    };
    let none = json!({});
    for url in [
        "hunter2",
        "ftp://example.com/hunter2",
        "http://example.com/hunter2",
        "https://user:hunter2@example.com/",
        "https://127.0.0.1/hunter2",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/",
        "https://0x7f.1/",
    ] {
        let error = webhook(url, &none);
        assert!(error.starts_with("webhook.url: "), "{url} {error}");
    }
    let url = "https://example.com/hunter2";
    for (more, field) in [
        (json!({"secret": null}), "webhook.secret: "),
        (json!({"secret": ""}), "webhook.secret: "),
        (json!({"secret": "hunter2"}), "webhook.secret: "),
        (json!({"secret_file": "/nowhere"}), "webhook.secret_file: "),
        (json!({"secret": null, "secret_file": "/nowhere"}), "webhook.secret_file: "),
        (json!({"timeout_ms": 0}), "webhook.timeout_ms: 0 is out of range: expected 1 to 25000, "),
        (
            json!({"timeout_ms": 60_000}),
            "webhook.timeout_ms: 60000 is out of range: expected 1 to 25000, because a document is claimed for 30000 ms",
        ),
        (json!({"concurrency": 0}), "webhook.concurrency: "),
        (json!({"concurrency": 10_000}), "webhook.concurrency: "),
    ] {
        let error = webhook(url, &more);
        assert!(error.starts_with(field), "{more} {error}");
    }
}

#[test]
fn the_refusal_of_a_folder_bucket_or_table_names_the_wrong_field() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let file = format!("file://{}", file.display());
    for url in [
        &*file,
        "file:///nowhere/at/all",
        "file://host/a",
        "/srv",
        "https://a",
        "s3://",
        "s3://k:hunter2@b/c",
    ] {
        let error = refusal(&json!({"object": {"url": url}}));
        assert!(error.starts_with("object.url: "), "{url} {error}");
    }
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "\n").unwrap();
    let url = "postgres://a:hunter2@b/c";
    for (described, field) in [
        (json!({"url": "mysql://a:hunter2@b/c", "table": "t"}), "postgres.url: "),
        (json!({"url": "postgres://a:hunter2@b/c?sslmode=hunter2", "table": "t"}), "postgres.url: "),
        (json!({"url": "postgres://a:x@hunter2@b/c", "table": "t"}), "postgres.url: "),
        (json!({"url": url, "table": "t; DROP TABLE u"}), "postgres.table: "),
        (json!({"url": url, "table": "t", "timeout_ms": 0}), "postgres.timeout_ms: "),
        (
            json!({"url": url, "table": "t", "timeout_ms": 25_001}),
            "postgres.timeout_ms: 25001 is out of range: expected 1 to 25000, ",
        ),
        (json!({"url": url, "table": "t", "password_file": empty}), "postgres.password_file: "),
        (
            json!({"url": "postgres://a@b/c", "table": "t", "password_file": empty}),
            "postgres.password_file: ",
        ),
    ] {
        let error = refusal(&json!({ "postgres": described }));
        assert!(error.starts_with(field), "{described} {error}");
    }
}

#[tokio::test]
async fn secrets_are_read_from_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, format!("{SECRET}\n")).unwrap();
    let webhook =
        open_sink(&json!({"webhook": {"url": "https://example.com/x", "secret_file": path}})).unwrap();
    assert_eq!(webhook.describe(), "webhook https://example.com");
    std::fs::write(&path, "hunter2\n").unwrap();
    let described = json!({"url": "postgres://a@b:6432/c", "table": "t", "password_file": path});
    let table: Box<dyn Sink> = open_sink(&json!({"postgres": described})).unwrap();
    assert_eq!(table.describe(), "table \"t\" in postgres://a@b:6432/c");
}
