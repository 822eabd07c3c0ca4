//! A lost disk: the store is made again from a backup, and no number is issued twice.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::http::ask;
use super::running::Server;

fn bates(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.current_dir(folder).env_remove("BATES_STORE").env_remove("BATES_CONFIG");
    let output = command.args(arguments).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// Numbers of scopes that are old, of one that begins with each call, and of a shuffled series.
fn take(server: &Server, name: &str) -> Vec<String> {
    let mut taken = Vec::new();
    for scope in ["a", "b", name] {
        let numbers = (0..40).map(|_| server.redis_cli(&["INCR", &format!("seq:{scope}")]));
        taken.extend(numbers.map(|number| format!("seq {scope} {number}")));
        let documents = server.redis_cli(&["LPOP", &format!("id-pool:{scope}:T"), "50"]);
        taken.extend(documents.lines().map(str::to_owned));
    }
    taken.extend(server.redis_cli(&["LPOP", "short", "100"]).lines().map(str::to_owned));
    taken
}

#[test]
fn a_store_restored_from_a_backup_repeats_no_number() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let data = at.join("data");
    let server = Server::start(&data);
    let mut all = take(&server, "first");
    let backup = ["backup", "backup.db", "--data", "data"];
    let (is_written, text) = bates(at, &backup);
    assert!(is_written && text.contains("5 series, 7 scopes"), "{text}");
    let mode = fs::metadata(at.join("backup.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it holds the keys of shuffled series");
    assert!(!bates(at, &backup).0, "a backup is never overwritten");
    // All of this is lost with the disk.
    all.extend(take(&server, "second"));
    server.kill();
    fs::remove_dir_all(&data).unwrap();
    let (is_done, plan) = bates(at, &["restore", "backup.db", "--data", "data", "--dry-run"]);
    assert!(is_done && plan.contains("would restore") && !data.exists(), "{plan}");
    let restore = ["restore", "backup.db", "--data", "data"];
    assert!(bates(at, &restore).0);
    let (is_again, text) = bates(at, &restore);
    assert!(!is_again && text.contains("holds a store"), "{text}");
    let refused = || {
        let command = Command::new(env!("CARGO_BIN_EXE_bates"));
        Server::try_start(command, &data, "127.0.0.1:0").err().unwrap()
    };
    assert!(refused().contains("bates floor --all --by"), "it issues nothing yet");
    let floor = ["floor", "--all", "--by", "10000", "--data", "data"];
    let (is_shown, plan) = bates(at, &[&floor[..], &["--dry-run"]].concat());
    assert!(is_shown && plan.contains("conversation  3") && plan.contains("nothing was changed"), "{plan}");
    assert!(refused().contains("bates floor --all --by"), "a plan changes nothing");
    let (is_raised, text) = bates(at, &floor);
    assert!(is_raised && text.contains("raised 7 cursors by 10,000"), "{text}");
    let server = Server::start(&data);
    let (_, peek) = ask(server.http, "GET", "/v1/series/conversation/peek?conversation=unknown", "");
    assert_eq!((&peek["next"], &peek["last"]), (&10_001.into(), &serde_json::Value::Null));
    all.extend(take(&server, "second"));
    all.extend(take(&server, "third"));
    server.stop();
    let distinct: HashSet<&String> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "no number came twice");
}

#[test]
fn a_file_that_is_no_backup_of_this_store_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    Server::start(&at.join("data")).stop();
    assert!(bates(at, &["backup", "backup.db", "--data", "data"]).0);
    fs::write(at.join("text.db"), "no database").unwrap();
    let bytes = fs::read(at.join("backup.db")).unwrap();
    fs::write(at.join("cut.db"), &bytes[..bytes.len() / 2]).unwrap();
    for file in ["missing.db", "text.db", "cut.db"] {
        let (is_restored, text) = bates(at, &["restore", file, "--data", "new"]);
        assert!(!is_restored && !at.join("new").exists(), "{file}: {text}");
    }
    fs::write(at.join("bates.yaml"), "store: sqlite:new\nstore_id: 0192f0c1-0000-7000-8000-000000000000\n")
        .unwrap();
    let (is_restored, text) = bates(at, &["restore", "backup.db"]);
    assert!(!is_restored && text.contains("another store") && !at.join("new").exists(), "{text}");
    assert!(!bates(at, &["backup", "other.db", "--data", "nowhere"]).0);
    fs::write(at.join("bates.yaml"), "store: postgres://bates@db/numbers\n").unwrap();
    let (is_written, text) = bates(at, &["backup", "other.db"]);
    assert!(!is_written && text.contains("pg_dump"), "{text}");
}

#[test]
fn a_folder_put_back_from_a_copy_is_refused_where_there_is_a_mark_file() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let (data, copy, mark) = (at.join("data"), at.join("copy"), at.join("bates.mark"));
    let environment = [("BATES_MARK_FILE", mark.to_str().unwrap())];
    let start = || Server::start_with(&data, "127.0.0.1:0", &environment);
    let server = start();
    assert_eq!(server.redis_cli(&["INCRBY", "seq:a", "100"]), "100");
    server.stop();
    assert!(Command::new("cp").arg("-r").args([&data, &copy]).status().unwrap().success());
    let server = start();
    let issued: u64 = server.redis_cli(&["INCRBY", "seq:a", "1000"]).parse().unwrap();
    server.stop();
    fs::remove_dir_all(&data).unwrap();
    assert!(Command::new("cp").arg("-r").args([&copy, &data]).status().unwrap().success());
    let refused = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.envs(environment);
        Server::try_start(command, &data, "127.0.0.1:0").err().unwrap()
    };
    for _ in 0..2 {
        let error = refused();
        assert!(error.contains("end at commit") && error.contains("bates floor --all"), "{error}");
    }
    let mut floor = Command::new(env!("CARGO_BIN_EXE_bates"));
    floor.args(["floor", "--all", "--by", "5000", "--data"]).arg(&data).envs(environment);
    assert!(floor.output().unwrap().status.success());
    let server = start();
    assert!(server.redis_cli(&["INCR", "seq:a"]).parse::<u64>().unwrap() > issued);
    server.stop();
    start().stop();
    // A store that is gone, and one beside the mark of another.
    fs::remove_dir_all(&data).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["serve", "--new", "--data"]).arg(&data).envs(environment);
    let error = Server::run(command).err().unwrap();
    assert!(error.contains("does not hold") && !data.join("bates.db").exists(), "{error}");
    Server::start(&at.join("other")).stop();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["serve", "--data"]).arg(at.join("other")).envs(environment);
    let error = Server::run(command).err().unwrap();
    assert!(error.contains("a mark file of its own"), "{error}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["check", "--data", "data"]).current_dir(at).env("BATES_MARK_FILE", data.join("mark"));
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("mark_file must be outside"));
}
