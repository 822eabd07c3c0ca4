//! The systemd unit: checked by systemd itself, and permitting every system call of a server.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use bates_testkit::programs;
use tempfile::TempDir;

use super::super::http::ask;
use super::super::running::Server;
use super::{program, read};

const UNIT: &str = "deploy/systemd/bates.service";

/// Exposure in tenths of 10.0; the rest comes from being a network server.
const EXPOSURE_MAX: &str = "--threshold=15";

/// The values of a key, in order.
fn values<'a>(unit: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    unit.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix('='))
}

#[test]
fn systemd_accepts_the_unit_and_rates_it_hardened() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("bates.service");
    fs::write(&file, read(UNIT).replace("/usr/local/bin/bates", env!("CARGO_BIN_EXE_bates"))).unwrap();
    let file = file.to_str().unwrap();
    let complaints = program("systemd-analyze", &["verify", "--man=no", file]);
    assert!(complaints.trim().is_empty(), "{complaints}");
    program("systemd-analyze", &["security", "--offline=true", "--no-pager", EXPOSURE_MAX, file]);
}

#[test]
fn the_server_understands_the_arguments_and_variables_of_the_unit() {
    let unit = read(UNIT);
    let folder = TempDir::new().unwrap();
    let (config, secret) = (folder.path().join("bates.yaml"), folder.path().join("secret"));
    fs::write(&config, "").unwrap();
    fs::write(&secret, "open-sesame\n").unwrap();
    let mut words = values(&unit, "ExecStart").next().unwrap().split(' ');
    assert_eq!((words.next(), words.next()), (Some("/usr/local/bin/bates"), Some("serve")));
    assert_eq!(
        (words.next(), words.next(), words.next()),
        (Some("--config"), Some("/etc/bates/bates.yaml"), None)
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["check", "--config"]).arg(&config).env_clear();
    for (name, value) in values(&unit, "Environment").map(|pair| pair.split_once('=').unwrap()) {
        command.env(name, value.replace("%d", folder.path().to_str().unwrap()));
    }
    assert!(values(&unit, "LoadCredential").eq(["secret:/etc/bates/secret"]), "BATES_SECRET_FILE names it");
    let output = command.output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && !printed.contains("unknown variable"), "{printed}");
}

/// The system calls of a set and of the sets that it includes.
fn calls(set: &str) -> BTreeSet<String> {
    let listed = program("systemd-analyze", &["syscall-filter", "--no-pager", set]);
    let words =
        listed.lines().skip(1).map(str::trim).filter(|word| !word.is_empty() && !word.starts_with('#'));
    words
        .flat_map(|word| if word.starts_with('@') { calls(word) } else { [word.to_owned()].into() })
        .collect()
}

#[test]
fn a_server_makes_no_system_call_that_the_unit_forbids() {
    let unit = read(UNIT);
    let mut allowed = BTreeSet::new();
    for sets in values(&unit, "SystemCallFilter") {
        match sets.strip_prefix('~') {
            None => sets.split(' ').for_each(|set| allowed.extend(calls(set))),
            Some(sets) => sets.split(' ').flat_map(calls).for_each(|call| {
                allowed.remove(&call);
            }),
        }
    }
    assert!(allowed.contains("fsync") && !allowed.contains("chown"), "{allowed:?}");
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("calls");
    let mut command =
        Command::new(programs::find("strace").expect("strace; run `cargo xtask test`, which installs it"));
    command.args(["-f", "-qq", "-o"]).arg(&log).arg(env!("CARGO_BIN_EXE_bates"));
    let server = Server::try_start(command, &folder.path().join("data"), "127.0.0.1:0").unwrap();
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), "1");
    assert_eq!(ask(server.http, "POST", "/v1/series/short/next?count=1000", "").0, 200);
    end(&server);
    let log = fs::read_to_string(log).unwrap();
    let lines = log.lines().filter_map(|line| line.split_once(' ').map(|(_, call)| call.trim_start()));
    let called: BTreeSet<&str> =
        lines.filter_map(|call| call.split_once('(').map(|(name, _)| name)).collect();
    assert!(called.contains("fsync") && called.contains("accept4"), "{called:?}");
    // As root, SQLite changes the owner of its files to that of the folder; the user of the unit is never root.
    let forbidden: Vec<&&str> = called
        .iter()
        .filter(|call| is_call(call) && !allowed.contains(**call) && **call != "fchown")
        .collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
    let is_writable_code = |line: &&str| line.contains("PROT_WRITE") && line.contains("PROT_EXEC");
    assert_eq!(log.lines().find(is_writable_code), None, "MemoryDenyWriteExecute forbids it");
}

/// Whether a word names a system call; the log also has lines such as `<... futex resumed>`.
fn is_call(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Stops a server under strace, so that the log covers its shutdown.
fn end(server: &Server) {
    let children = format!("/proc/{0}/task/{0}/children", server.pid());
    let traced = fs::read_to_string(&children).unwrap();
    assert!(Command::new("sh").args(["-c", "kill -TERM $0", traced.trim()]).status().unwrap().success());
    while fs::read_to_string(&children).is_ok_and(|left| !left.trim().is_empty()) {
        std::thread::yield_now();
    }
}
