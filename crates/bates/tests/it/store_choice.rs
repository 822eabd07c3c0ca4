//! Which store a server takes: never another one than its operator expects, and never a new one in its place.

use std::fs;
use std::path::Path;
use std::process::Command;

use bates_testkit::PrivatePostgres;
use tempfile::TempDir;

use super::running::Server;

const LISTEN: [&str; 4] = ["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"];

/// The environment and the flags of a start.
type Start<'s> = (&'s [(&'s str, &'s str)], &'s [&'s str]);

/// A command that is started in `folder`.
fn bates(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.current_dir(folder).env_remove("BATES_STORE").env_remove("BATES_CONFIG");
    command.envs(environment.iter().copied()).args(arguments);
    command
}

fn serve(folder: &Path, environment: &[(&str, &str)], flags: &[&str]) -> Result<Server, String> {
    let mut command = bates(folder, environment, &["serve"]);
    command.args(LISTEN).args(flags);
    Server::run(command)
}

/// The error output of a command that is refused.
fn refused(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let output = bates(folder, environment, arguments).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn succeeds(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let output = bates(folder, environment, arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn two_stores_that_differ_are_refused_and_both_are_named() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    write(at, "bates.yaml", "store: sqlite:one\n");
    succeeds(at, &[], &["migrate"]);
    let two = at.join("two");
    let flag = refused(at, &[], &["serve", "--data", "two"]);
    assert!(
        flag.contains(two.to_str().unwrap()) && flag.contains(at.join("one").to_str().unwrap()),
        "{flag}"
    );
    let both = [("BATES_STORE", "postgres://bates:hunter2@db/numbers")];
    let variable = refused(at, &both, &["serve"]);
    assert!(
        variable.contains("BATES_STORE") && variable.contains("@db") && variable.contains("one"),
        "{variable}"
    );
    assert!(!variable.contains("hunter2"), "{variable}");
    write(at, "bates.yaml", "http: off\n");
    let three = refused(at, &[("BATES_STORE", "sqlite:one")], &["serve", "--data", "two"]);
    assert!(three.contains("BATES_STORE") && three.contains("--data"), "{three}");
    assert!(!two.exists(), "nothing was made");
    // The same store named twice is one store.
    write(at, "bates.yaml", "store: sqlite:one\n");
    serve(at, &[("BATES_STORE", &format!("sqlite:{}", at.join("one").display()))], &[]).unwrap().stop();
}

#[test]
fn a_relative_path_begins_at_the_file_wherever_the_server_is_started() {
    let folder = TempDir::new().unwrap();
    let (home, elsewhere) = (folder.path().join("home"), folder.path().join("elsewhere"));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    write(&home, "bates.yaml", "series: {invoice: {pattern: 'INV-{seq:6}', key: invoice}}\n");
    let first = serve(&home, &[], &["--new"]).unwrap();
    assert_eq!(first.redis_cli(&["LPOP", "invoice"]), "INV-000001");
    first.stop();
    for path in [folder.path(), &elsewhere] {
        let file = home.join("bates.yaml");
        let server = serve(path, &[("BATES_CONFIG", file.to_str().unwrap())], &[]).unwrap();
        assert_ne!(server.redis_cli(&["LPOP", "invoice"]), "INV-000001");
        server.stop();
    }
    assert!(!elsewhere.join("bates-data").exists() && !folder.path().join("bates-data").exists());
}

#[test]
fn only_a_start_without_any_configuration_makes_a_store_by_itself() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    serve(at, &[], &[]).unwrap().stop();
    assert!(at.join("bates-data/bates.db").exists());
    write(at, "other.yaml", "store: sqlite:other\n");
    let named: [Start<'_>; 3] = [
        (&[], &["--data", "other"]),
        (&[("BATES_STORE", "sqlite:other")], &[]),
        (&[], &["--config", "other.yaml"]),
    ];
    for (environment, flags) in named {
        let error = serve(at, environment, flags).err().unwrap();
        assert!(error.contains("holds no store") && error.contains("--new"), "{error}");
        assert!(!at.join("other").exists(), "a refusal makes nothing");
    }
    for command in [
        &["adopt", "--series", "short", "other.yaml", "--data", "other"][..],
        &["floor", "short", "5", "--data", "other"],
    ] {
        assert!(refused(at, &[], command).contains("holds no store"));
    }
    serve(at, &[], &["--data", "other", "--new"]).unwrap().stop();
    let again = serve(at, &[], &["--data", "other", "--new"]).err().unwrap();
    assert!(again.contains("there is a store at") && again.contains("without --new"), "{again}");
    serve(at, &[], &["--data", "other"]).unwrap().stop();
}

#[test]
fn a_store_is_known_by_its_id() {
    let postgres = PrivatePostgres::start().unwrap();
    let url = postgres.url();
    for store in ["sqlite:bates-data", &url] {
        let folder = TempDir::new().unwrap();
        let at = folder.path();
        let environment = [("BATES_STORE", store)];
        let made = succeeds(at, &environment, &["init", "--store"]);
        assert!(made.contains("made the store"), "{made}");
        let file = fs::read_to_string(at.join("bates.yaml")).unwrap();
        assert_eq!(file.matches("\nstore_id: ").count(), 1, "{file}");
        serve(at, &environment, &[]).unwrap().stop();
        let again = refused(at, &environment, &["init", "--store"]);
        assert!(again.contains("store_id"), "{again}");
        // Another store at another address, and none at all.
        let other = format!("sqlite:{}", at.join("other").display());
        write(at, "empty.yaml", "");
        succeeds(at, &[("BATES_STORE", &other), ("BATES_CONFIG", "empty.yaml")], &["migrate"]);
        for command in ["serve", "migrate"] {
            let error = refused(at, &[("BATES_STORE", "sqlite:missing")], &[command]);
            assert!(error.contains("holds no store"), "{error}");
        }
        let error = serve(at, &[("BATES_STORE", &other)], &[]).err().unwrap();
        assert!(error.contains("this is another store") && error.contains("store_id"), "{error}");
        assert!(!at.join("missing").exists());
    }
}

#[test]
fn the_first_lines_tell_a_new_store_from_an_old_one() {
    let folder = TempDir::new().unwrap();
    let lines = || {
        let mut command = bates(folder.path(), &[], &["serve"]);
        command.args(LISTEN);
        let mut server = Server::run(command).unwrap();
        let store = server.line("store ");
        (server, store)
    };
    let (server, store) = lines();
    let path = folder.path().join("bates-data");
    assert!(store.contains(path.to_str().unwrap()) && store.ends_with(", new"), "{store}");
    assert_eq!(server.redis_cli(&["INCRBY", "counter:a", "40"]), "40");
    server.stop();
    let (server, store) = lines();
    assert!(store.ends_with(", with 5 series, 1 scope, 40 numbers granted"), "{store}");
    server.stop();
}
