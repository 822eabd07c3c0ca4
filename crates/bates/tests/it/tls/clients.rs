//! Unmodified clients over TLS: redis-cli, curl, redis-py, ioredis, the Rust client and the commands.

use std::path::Path;
use std::process::{Command, Output};

use bates_client::{Client, Error};
use bates_testkit::clients::{IOREDIS, Library, REDIS_PY};
use bates_testkit::{certificates, programs};

use super::Site;

#[test]
fn redis_cli_and_curl_get_numbers_if_they_trust_the_authority() {
    let (site, other) = (Site::start(&[]), certificates());
    let (ours, theirs) = (site.text("ca.pem"), other.path().join("ca.pem").display().to_string());
    let redis =
        |authority: &str| site.server.redis_cli(&["--tls", "--cacert", authority, "INCR", "counter:a"]);
    assert_eq!(redis(&ours), "1");
    assert_eq!(redis(&theirs), "");
    let url = format!("https://localhost:{}/v1/series/n/next", site.server.http);
    let curl = |authority: &str| {
        let program = programs::find("curl").expect("curl; run `cargo xtask test`, which installs it");
        let arguments =
            ["-sS", "--http2", "-w", " %{http_version}", "-X", "POST", "--cacert", authority, &url];
        let output = Command::new(program).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(curl(&ours), r#"{"ids":["N-1"]} 1.1"#);
    assert_eq!(curl(&theirs), " 0");
    assert_eq!(redis(&ours), "2");
    site.server.stop();
}

fn run_script(library: &Library, script: &str) {
    let site = Site::start(&[("BATES_SECRET", "open sesame")]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script);
    let arguments = [site.server.port.to_string(), site.text("ca.pem"), "open sesame".to_owned()];
    let output = library.run(&script).unwrap().args(arguments).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout.trim(), "ok");
}

#[test]
fn unmodified_redis_py_gets_numbers_over_tls() {
    run_script(&REDIS_PY, "redis_py_tls.py");
}

#[test]
fn unmodified_ioredis_gets_numbers_over_tls() {
    run_script(&IOREDIS, "ioredis_tls.js");
}

#[tokio::test]
async fn the_rust_client_gets_numbers_over_tls() {
    let (site, other) = (Site::start(&[("BATES_SECRET", "open sesame")]), certificates());
    let client = |authority: &Path| {
        let builder =
            Client::builder(format!("https://localhost:{}", site.server.http)).secret("open sesame");
        builder.authority(std::fs::read(authority).unwrap()).build().unwrap()
    };
    assert_eq!(client(&site.path("ca.pem")).series("n").next().await.unwrap(), "N-1");
    let refused = client(&other.path().join("ca.pem")).series("n").next().await.unwrap_err();
    assert!(matches!(refused, Error::Untrusted { .. }), "{refused:?}");
}

#[test]
fn commands_trust_the_authority_in_a_file() {
    let site = Site::start(&[("BATES_SECRET", "open sesame")]);
    let run = |variable: Option<&str>, flags: &[&str]| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.args(["next", "n", "--url", &format!("https://localhost:{}", site.server.http)]).args(flags);
        command.env_remove("BATES_CA_FILE").envs(variable.map(|file| ("BATES_CA_FILE", file)));
        command.env("BATES_SECRET", "open sesame").output().unwrap()
    };
    let authority = site.text("ca.pem");
    assert_eq!(run(Some(&authority), &[]).stdout, b"N-1\n");
    assert_eq!(run(None, &["--ca-file", &authority]).stdout, b"N-2\n");
    for (variable, code, words) in [
        (None, 3, "untrusted certificate from localhost"),
        (None, 3, "BATES_CA_FILE"),
        (Some("/nowhere.pem"), 3, "cannot read the authorities in /nowhere.pem"),
        (Some(&*site.text("server.key")), 2, "it has no certificate in PEM"),
    ] {
        let output = run(variable, &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && stderr.contains(words), "{words}: {stderr}");
    }
}
