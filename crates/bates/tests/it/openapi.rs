//! Generated requests against `/openapi.json`: schemathesis sends valid and invalid ones to a server process, and
//! compares the answers with the document. `tests/schemathesis/` has its settings.

use std::path::Path;
use std::process::Command;

use bates_testkit::clients::SCHEMATHESIS;
use bates_testkit::{PrivatePostgres, PrivateRedis};

use super::audit::ask_with;
use super::running::Server;

const SECRET: &str = "the shared one";

const SERIES: &str = r#"
  letter:
    pattern: "{project}-{type}-{seq}"
    key: "letter:{project}:{type}"
    audit: true
    pool: { redis: "REDIS", key: "list:{project}:{type}", size: 100 }
    sink: { object: { url: "file://FOLDER" } }
  counter: { pattern: "{seq}", promise: ordered }
  invoice: { pattern: "INV-{date:%Y}-{seq:12}", promise: gapless, reset: yearly, sink: { object: { url: "file://FOLDER" } } }
  farmer: { pattern: "{seq:9}{check:verhoeff}", order: shuffled }
"#;

/// A setting that a variable changes for a longer run, or one with other requests.
fn setting(variable: &str, default: u32) -> String {
    std::env::var(variable).unwrap_or_else(|_| default.to_string())
}

/// Starts a server with a sink, a pool, a secret and a token, and tests it.
fn test_answers(store: &str) {
    let (folder, redis) = (tempfile::tempdir().unwrap(), PrivateRedis::start().unwrap());
    let file = folder.path().join("bates.yaml");
    let documents = folder.path().join("documents");
    std::fs::create_dir(&documents).unwrap();
    let series = SERIES.replace("FOLDER", &documents.display().to_string()).replace("REDIS", &redis.url());
    let tokens = "tokens: { clerk: { secret: the clerk's one, may: [read, take] } }";
    std::fs::write(&file, format!("secret: {SECRET}\n{tokens}\nseries:{series}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command
        .env("BATES_CONFIG", &file)
        // Wrong secrets are part of the test.
        .envs([("BATES_WRONG_SECRETS_MAX", "1000000"), ("BATES_STRANGER_REQUESTS_MAX", "1000000")])
        .env("BATES_STORE", store.replace("FOLDER", &folder.path().display().to_string()));
    if store.starts_with("postgres") {
        // A slow machine must not fail a request.
        command.env("BATES_STORE_TIMEOUT_MS", "60000");
    }
    command.args(["serve", "--new", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    let server = Server::run(command).unwrap_or_else(|stderr| panic!("the server did not start: {stderr}"));
    let report = run_schemathesis(server.http, folder.path());
    for series in ["letter", "counter", "invoice", "farmer"] {
        let (_, metrics) = ask_with(server.http, SECRET, "", "GET /metrics", "");
        let issued = metrics
            .lines()
            .find_map(|line| line.strip_prefix(&format!("bates_issued_total{{series=\"{series}\"}} ")));
        assert!(issued.is_some_and(|count| count != "0"), "no request reached {series}: {report}");
    }
}

fn run_schemathesis(port: u16, folder: &Path) -> String {
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis");
    let mut command = SCHEMATHESIS.run(&settings.join("run.py")).unwrap();
    command.arg("--config-file").arg(settings.join("schemathesis.toml"));
    command.arg("run").arg(format!("http://127.0.0.1:{port}/openapi.json"));
    command.args(["--header", &format!("Authorization: Bearer {SECRET}")]);
    command.args([
        "--seed",
        &setting("BATES_TEST_SEED", 1),
        "--max-examples",
        &setting("BATES_TEST_EXAMPLES", 50),
    ]);
    // Its files go to a folder of the test, and it imports its hooks from the folder of its settings.
    command.current_dir(folder).env("SCHEMATHESIS_HOOKS", "hooks");
    let search = format!("{}:{}", SCHEMATHESIS.folder().display(), settings.display());
    let output = command.env("PYTHONPATH", search).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}{stderr}");
    assert!(report.contains("Test cases:"), "{report}{stderr}");
    report
}

#[test]
fn generated_requests_are_answered_as_the_openapi_document_says_on_a_data_folder() {
    test_answers("sqlite:FOLDER/data");
}

#[test]
fn generated_requests_are_answered_as_the_openapi_document_says_on_postgresql() {
    let postgres = PrivatePostgres::start().unwrap();
    test_answers(&postgres.url());
}
