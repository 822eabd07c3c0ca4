//! The secret of a server process: when it is required, and that no output shows it.

use std::process::{Command, Output};

use super::running::Server;

const SECRET: &str = "open sesame, open sesame";

/// The output of a server that must refuse to start.
fn refuse_start(address: &str, secret: Option<&str>) -> Output {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["serve", "--http", "off", "--resp", address, "--data"]).arg(data.path());
    command.env_remove("BATES_SECRET").envs(secret.map(|secret| ("BATES_SECRET", secret)));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    output
}

#[test]
fn a_server_without_a_secret_listens_only_on_loopback() {
    let output = refuse_start("0.0.0.0:0", None);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("BATES_SECRET") && stderr.contains("loopback"), "{stderr}");
}

#[test]
fn an_empty_secret_is_refused() {
    let output = refuse_start("127.0.0.1:0", Some(""));
    assert!(String::from_utf8_lossy(&output.stderr).contains("BATES_SECRET: secret is empty"));
}

#[test]
fn a_server_with_a_secret_listens_on_any_address_and_requires_the_secret() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(
        data.path(),
        "0.0.0.0:0",
        &[("BATES_SECRET", SECRET), ("BATES_PLAINTEXT", "allowed")],
    );
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), "NOAUTH Authentication required.");
    assert_eq!(server.redis_cli(&["--no-auth-warning", "-a", SECRET, "INCR", "counter:a"]), "1");
    assert_eq!(
        server.redis_cli(&["--no-auth-warning", "--user", "default", "-a", SECRET, "INCR", "counter:a"]),
        "2"
    );
    let wrong = server.redis_cli(&["--no-auth-warning", "-a", "wrong", "INCR", "counter:a"]);
    assert!(wrong.contains("NOAUTH"), "{wrong}");
    let stderr = server.stop();
    assert!(stderr.contains("stopped") && !stderr.contains("sesame"), "{stderr}");
}

/// Runs `bates check` on a configuration: the exit code, and all output.
fn check(text: &str, environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bates.yaml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["check", "--config"]).arg(&file).env_remove("BATES_SECRET");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!printed.contains("sesame"), "no secret is shown, not even a bad one: {printed}");
    (output.status.code(), printed)
}

#[test]
fn tokens_come_from_the_file_and_the_environment_and_errors_name_the_line() {
    let good = "tokens:\n  front-desk: { secret: \"a sesame, open sesame\", may: [read, take] }\nhttp: 0.0.0.0:8080\nplaintext: allowed\n";
    let (code, printed) = check(
        good,
        &[
            ("BATES_TOKENS__CLINIC__SECRET", "b sesame, open sesame"),
            ("BATES_TOKENS__CLINIC__MAY", "read,operate"),
            ("BATES_TOKENS__CLINIC__SERIES", "clinic.*,farmer"),
        ],
    );
    assert_eq!(code, Some(0), "tokens allow other addresses than loopback: {printed}");
    assert!(printed.contains("secret          is set"), "{printed}");
    let dashed = "tokens:\n  front-desk: { may: [read] }\n";
    assert_eq!(check(dashed, &[("BATES_TOKENS__FRONT_DESK__SECRET", "a sesame")]).0, Some(0));
    for (text, expected) in [
        ("tokens: 7", "line 1: tokens: expected a map of names"),
        (
            "tokens:\n  a: sesame",
            "line 2: tokens: a: expected a map with some of secret, secret_file, certificate, may",
        ),
        (
            "tokens:\n  a: { secrets: sesame }",
            "line 2: tokens: a: expected a map with some of secret, secret_file, certificate, may",
        ),
        (
            "tokens:\n  a: { secret: sesame }",
            "line 2: tokens: a: expected may: which of the rights read, take, define",
        ),
        (
            "tokens:\n  a: { secret: sesame, may: [] }",
            "line 2: tokens: a: may: expected a list of at least one word",
        ),
        ("tokens:\n  a: { secret: sesame, may: [reed] }", "line 2: tokens: a: may: unknown right \"reed\""),
        (
            "tokens:\n  a: { secret: sesame, may: [read], series: [\"acme*\"] }",
            "\"acme*\" names no series: expected",
        ),
        (
            "tokens:\n  a: { secret: sesame, may: [read], series: [] }",
            "series: expected a list of at least one word",
        ),
        ("tokens:\n  a: { secret: sesame, may: [read], scope: x }", "scope: expected a map of parameters"),
        (
            "tokens:\n  a: { secret: short sesame, may: [read] }\nhttp: 0.0.0.0:8080",
            "line 2: tokens: a: the secret has 12 characters; at 0.0.0.0:8080 it needs at least 16",
        ),
        ("secret: short sesame\nresp: 0.0.0.0:6380", "line 1: the secret has 12 characters; at 0.0.0.0:6380"),
        ("tokens:\n  a: {}", "line 2: tokens: a: expected secret, secret_file or certificate"),
        ("tokens:\n  a: { secret: \"\" }", "line 2: tokens: a: secret is empty"),
        (
            "tokens:\n  a: { secret: \" sesame\" }",
            "line 2: tokens: a: secret must be visible ASCII without spaces around it",
        ),
        ("tokens:\n  a: { secret_file: /nowhere }", "line 2: tokens: a: secret_file: cannot read /nowhere"),
        ("tokens:\n  a: { secret: s, secret_file: t }", "expected secret or secret_file, not both"),
        ("tokens:\n  default: { secret: s }", "line 2: tokens: invalid name \"default\""),
        ("tokens:\n  10.0.0.7: { secret: s }", "tokens: invalid name"),
        (
            "tokens:\n  a: { secret: sesame }\n  b: { secret: sesame }",
            "line 3: tokens: b: same secret as a: each token needs its own",
        ),
        (
            "secret: sesame\ntokens:\n  a: { secret: sesame }",
            "line 3: tokens: a: same secret as the shared one",
        ),
    ] {
        let (code, printed) = check(text, &[]);
        assert!(code == Some(2) && printed.contains(expected), "{text}: {printed}");
    }
}

#[test]
fn check_describes_an_audit_and_refuses_an_invalid_one_with_its_line() {
    let series = |audit: &str| format!("series:\n  n:\n    pattern: \"{{seq}}\"\n    audit: {audit}\n");
    assert!(
        check(&series("true"), &[])
            .1
            .contains("records who took which numbers, and keeps the records forever")
    );
    assert!(check(&series("{ retention_hours: 9600 }"), &[]).1.contains("keeps the records for 9,600 hours"));
    assert!(!check(&series("false"), &[]).1.contains("who took"));
    for (audit, expected) in [
        (
            "maybe",
            "line 4: series \"n\": audit: invalid type: string \"maybe\", expected true, false, or a map",
        ),
        ("{ retention_hours: 0 }", "line 4: series \"n\": audit: retention_hours is 0; expected 1 to 876000"),
        ("{ keep: 1 }", "unknown field `keep`, expected `retention_hours`"),
    ] {
        let (code, printed) = check(&series(audit), &[]);
        assert!(code == Some(2) && printed.contains(expected), "{audit}: {printed}");
    }
}
