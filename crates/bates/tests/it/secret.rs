//! The secret of a server process: where it is needed, and that it is shown to nobody.

use std::process::{Command, Output};

use super::running::Server;

const SECRET: &str = "open sesame";

fn refused(address: &str, secret: Option<&str>) -> Output {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["serve", "--http", "off", "--resp", address, "--data"]).arg(data.path());
    command.env_remove("BATES_SECRET").envs(secret.map(|secret| ("BATES_SECRET", secret)));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    output
}

#[test]
fn without_a_secret_only_loopback_is_served() {
    let output = refused("0.0.0.0:0", None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("BATES_SECRET") && said.contains("loopback"), "{said}");
}

#[test]
fn an_empty_secret_is_none_and_is_refused() {
    let output = refused("127.0.0.1:0", Some(""));
    assert!(String::from_utf8_lossy(&output.stderr).contains("BATES_SECRET: secret is empty"));
}

#[test]
fn with_a_secret_every_address_is_served_to_those_who_know_it() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "0.0.0.0:0", &[("BATES_SECRET", SECRET)]);
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), "NOAUTH Authentication required.");
    assert_eq!(server.redis_cli(&["--no-auth-warning", "-a", SECRET, "INCR", "counter:a"]), "1");
    assert_eq!(
        server.redis_cli(&["--no-auth-warning", "--user", "default", "-a", SECRET, "INCR", "counter:a"]),
        "2"
    );
    let wrong = server.redis_cli(&["--no-auth-warning", "-a", "wrong", "INCR", "counter:a"]);
    assert!(wrong.contains("NOAUTH"), "{wrong}");
    let said = server.stop();
    assert!(said.contains("stopped") && !said.contains("sesame"), "{said}");
}

/// What `bates check` says of a configuration.
fn checked(text: &str, environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bates.yaml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["check", "--config"]).arg(&file).env_remove("BATES_SECRET");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("sesame"), "a secret is shown to nobody, not even a bad one: {said}");
    (output.status.code(), said)
}

#[test]
fn tokens_are_read_from_the_file_and_the_environment_and_mistakes_are_told_with_their_place() {
    let good = "tokens:\n  front-desk: { secret: \"a sesame\" }\nhttp: 0.0.0.0:8080\n";
    let (code, said) = checked(good, &[("BATES_TOKENS__CLINIC__SECRET", "b sesame")]);
    assert_eq!(code, Some(0), "tokens guard other addresses too: {said}");
    assert!(said.contains("secret          is set"), "{said}");
    let dashed = "tokens:\n  front-desk: {}\n";
    assert_eq!(checked(dashed, &[("BATES_TOKENS__FRONT_DESK__SECRET", "a sesame")]).0, Some(0));
    for (text, told) in [
        ("tokens: 7", "line 1: tokens: expected a map of names"),
        ("tokens:\n  a: sesame", "line 2: tokens: a: expected a map with secret or secret_file"),
        ("tokens:\n  a: { secrets: sesame }", "line 2: tokens: a: expected a map with secret or secret_file"),
        ("tokens:\n  a: {}", "line 2: tokens: a: expected secret or secret_file"),
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
        let (code, said) = checked(text, &[]);
        assert!(code == Some(2) && said.contains(told), "{text}: {said}");
    }
}

#[test]
fn an_audit_is_told_and_a_wrong_one_refused_with_its_line() {
    let series = |audit: &str| format!("series:\n  n:\n    pattern: \"{{seq}}\"\n    audit: {audit}\n");
    assert!(
        checked(&series("true"), &[])
            .1
            .contains("records who took which numbers, and keeps the records forever")
    );
    assert!(
        checked(&series("{ retention_hours: 9600 }"), &[]).1.contains("keeps the records for 9,600 hours")
    );
    assert!(!checked(&series("false"), &[]).1.contains("who took"));
    for (audit, told) in [
        (
            "maybe",
            "line 4: series \"n\": audit: invalid type: string \"maybe\", expected true, false, or a map",
        ),
        ("{ retention_hours: 0 }", "line 4: series \"n\": audit: retention_hours is 0; expected 1 to 876000"),
        ("{ keep: 1 }", "unknown field `keep`, expected `retention_hours`"),
    ] {
        let (code, said) = checked(&series(audit), &[]);
        assert!(code == Some(2) && said.contains(told), "{audit}: {said}");
    }
}
