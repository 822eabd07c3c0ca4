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
