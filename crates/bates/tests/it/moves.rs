//! Concurrent and killed moves: numbering continues in one store only, and no half-moved store serves.

use std::process::{Child, Command, Stdio};

use bates_testkit::{PrivatePostgres, programs};
use tempfile::TempDir;

use super::running::Server;

/// Creates a database on the server, and returns its URL.
fn create_database(server: &PrivatePostgres, name: &str) -> String {
    let psql = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
    let status = Command::new(psql)
        .args(["--no-psqlrc", "--quiet", "--command", &format!("CREATE DATABASE {name}"), &server.url()])
        .status();
    assert!(status.unwrap().success());
    format!("{}/{name}", server.url().strip_suffix("/postgres").unwrap())
}

fn start_move(from: &str, to: &str) -> Child {
    spawn_move(Command::new(env!("CARGO_BIN_EXE_bates")), from, to)
}

/// Starts a move that is killed at its n-th write or sync.
fn start_doomed_move(from: &str, to: &str, nth: usize) -> Child {
    let strace = programs::find("strace").expect("strace; run `cargo xtask test`, which installs it");
    let mut command = Command::new(strace);
    let inject = format!("inject=sendto,pwrite64,fsync,fdatasync:signal=KILL:when={nth}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject, env!("CARGO_BIN_EXE_bates")]);
    spawn_move(command, from, to)
}

fn spawn_move(mut command: Command, from: &str, to: &str) -> Child {
    command.env_remove("PGPASSWORD").env_remove("BATES_STORE").args(["move-store", from, to]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for a move: whether it succeeded, and its output.
fn finish(mover: Child) -> (bool, String) {
    let output = mover.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Starts a server on a store of either kind; its error output if it refuses to start.
fn node(store: &str) -> Result<Server, String> {
    match store.strip_prefix("sqlite:") {
        Some(folder) => {
            Server::try_start(Command::new(env!("CARGO_BIN_EXE_bates")), folder.as_ref(), "127.0.0.1:0")
        }
        None => Server::try_node(store, &[], &[]),
    }
}

#[test]
fn one_of_two_concurrent_moves_wins_and_the_other_target_is_not_served() {
    let server = PrivatePostgres::start().unwrap();
    let folder = TempDir::new().unwrap();
    for round in 0..4 {
        let from = create_database(&server, &format!("from{round}"));
        let source = Server::node(&from);
        assert_eq!(source.redis_cli(&["INCR", "seq:a"]), "1");
        source.stop();
        let targets = [
            create_database(&server, &format!("one{round}")),
            format!("sqlite:{}", folder.path().join(format!("two{round}")).display()),
        ];
        let movers: Vec<Child> = targets.iter().map(|to| start_move(&from, to)).collect();
        let outcomes: Vec<(bool, String)> = movers.into_iter().map(finish).collect();
        let winners: Vec<usize> = (0..2).filter(|at| outcomes[*at].0).collect();
        assert_eq!(winners.len(), 1, "{outcomes:?}");
        assert!(outcomes[1 - winners[0]].1.contains("was left for"), "{outcomes:?}");
        let served = node(&targets[winners[0]]).unwrap();
        assert_eq!(served.redis_cli(&["INCR", "seq:a"]), "2");
        assert!(node(&from).err().unwrap().contains("was left for"));
        if winners[0] == 1 {
            let refused = node(&targets[0]).err().unwrap();
            assert!(refused.contains("holds no Bates store"), "the refused move created no store: {refused}");
        } else {
            let target = folder.path().join(format!("two{round}"));
            assert!(!target.exists(), "the refused move created no store: {}", target.display());
        }
    }
}

/// A kill at any write leaves no target, a target that refuses to serve, or a complete one.
#[test]
fn a_killed_move_leaves_no_half_moved_store_that_serves() {
    let server = PrivatePostgres::start().unwrap();
    let folder = TempDir::new().unwrap();
    for (round, nth) in [1, 2, 4, 7, 11, 16, 22, 29, 37, 46, 56, 70].into_iter().enumerate() {
        let from = format!("sqlite:{}", folder.path().join(format!("from{round}")).display());
        let source = node(&from).unwrap();
        assert_eq!(source.redis_cli(&["INCR", "seq:a"]), "1");
        source.stop();
        let to = if round % 2 == 0 {
            create_database(&server, &format!("to{round}"))
        } else {
            format!("sqlite:{}", folder.path().join(format!("to{round}")).display())
        };
        finish(start_doomed_move(&from, &to, nth));
        // While the old store serves, nothing was moved.
        if let Ok(source) = node(&from) {
            assert_eq!(source.redis_cli(&["INCR", "seq:a"]), "2", "killed at write {nth}");
            continue;
        }
        if let Ok(served) = node(&to) {
            assert_eq!(served.redis_cli(&["INCR", "seq:a"]), "2", "everything had arrived at write {nth}");
            continue;
        }
        let (is_done, output) = finish(start_move(&from, &to));
        assert!(is_done, "after write {nth}: {output}");
        assert!(node(&from).err().unwrap().contains("was left for"));
        assert_eq!(node(&to).unwrap().redis_cli(&["INCR", "seq:a"]), "2");
    }
}

#[test]
fn a_move_into_a_used_store_is_refused_and_the_old_store_keeps_serving() {
    let server = PrivatePostgres::start().unwrap();
    let (from, to) = (create_database(&server, "old"), create_database(&server, "new"));
    let source = Server::node(&from);
    assert_eq!(source.redis_cli(&["INCR", "seq:a"]), "1");
    source.stop();
    Server::node(&to).stop();
    let (is_done, output) = finish(start_move(&from, &to));
    assert!(!is_done && output.contains("has series of its own"), "{output}");
    assert_eq!(node(&from).unwrap().redis_cli(&["INCR", "seq:a"]), "2", "nothing was changed");
}

/// A suspended node holds numbers that a floor in the new store would not know about.
#[test]
fn a_move_beside_a_suspended_node_is_refused_unless_the_risk_is_accepted() {
    let server = PrivatePostgres::start().unwrap();
    let (from, to) = (create_database(&server, "before"), create_database(&server, "after"));
    let (suspended, other) = (Server::node(&from), Server::node(&from));
    assert_eq!(suspended.redis_cli(&["INCR", "seq:a"]), "1");
    assert_eq!(other.redis_cli(&["INCR", "seq:b"]), "1");
    suspended.redis_cli(&["LPOP", "short"]);
    suspended.signal("STOP");
    let move_with = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command
            .arg("move-store")
            .args(flags)
            .args([&from, &to])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        finish(command.spawn().unwrap())
    };
    let (is_done, output) = move_with(&["--wait", "3"]);
    assert!(!is_done && output.contains(&format!("process {}", suspended.pid())), "{output}");
    assert!(!output.contains(&format!("process {}", other.pid())), "the running node has answered: {output}");
    assert_eq!(other.redis_cli(&["INCR", "seq:b"]), "2", "the old store keeps serving");
    let (is_done, output) = move_with(&["--wait", "1", "--accept-risk"]);
    assert!(is_done && output.contains(&format!("process {}", suspended.pid())), "{output}");
}
