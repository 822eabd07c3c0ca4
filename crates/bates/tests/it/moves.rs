//! Moves that meet each other or are killed: numbering goes on in one place, and nothing half done is served.

use std::process::{Child, Command, Stdio};

use bates_testkit::{PrivatePostgres, programs};
use tempfile::TempDir;

use super::running::Server;

/// A database of the server, and its address.
fn database(server: &PrivatePostgres, name: &str) -> String {
    let psql = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
    let made = Command::new(psql)
        .args(["--no-psqlrc", "--quiet", "--command", &format!("CREATE DATABASE {name}"), &server.url()])
        .status();
    assert!(made.unwrap().success());
    format!("{}/{name}", server.url().strip_suffix("/postgres").unwrap())
}

fn mover(from: &str, to: &str) -> Child {
    moving(Command::new(env!("CARGO_BIN_EXE_bates")), from, to)
}

/// A mover that is killed with its n-th write or sync.
fn doomed(from: &str, to: &str, nth: usize) -> Child {
    let strace = programs::find("strace").expect("strace; run `cargo xtask test`, which installs it");
    let mut command = Command::new(strace);
    let inject = format!("inject=sendto,pwrite64,fsync,fdatasync:signal=KILL:when={nth}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject, env!("CARGO_BIN_EXE_bates")]);
    moving(command, from, to)
}

fn moving(mut command: Command, from: &str, to: &str) -> Child {
    command.env_remove("PGPASSWORD").env_remove("BATES_STORE").args(["move-store", from, to]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finished(mover: Child) -> (bool, String) {
    let output = mover.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn node(store: &str) -> Result<Server, String> {
    match store.strip_prefix("sqlite:") {
        Some(folder) => {
            Server::try_start(Command::new(env!("CARGO_BIN_EXE_bates")), folder.as_ref(), "127.0.0.1:0")
        }
        None => Server::try_node(store, &[], &[]),
    }
}

#[test]
fn of_two_moves_from_one_store_at_once_one_wins_and_the_other_target_is_not_served() {
    let server = PrivatePostgres::start().unwrap();
    let folder = TempDir::new().unwrap();
    for round in 0..4 {
        let from = database(&server, &format!("from{round}"));
        let source = Server::node(&from);
        assert_eq!(source.redis_cli(&["INCR", "seq:a"]), "1");
        source.stop();
        let targets = [
            database(&server, &format!("one{round}")),
            format!("sqlite:{}", folder.path().join(format!("two{round}")).display()),
        ];
        let movers: Vec<Child> = targets.iter().map(|to| mover(&from, to)).collect();
        let ended: Vec<(bool, String)> = movers.into_iter().map(finished).collect();
        let won: Vec<usize> = (0..2).filter(|at| ended[*at].0).collect();
        assert_eq!(won.len(), 1, "{ended:?}");
        assert!(ended[1 - won[0]].1.contains("was left for"), "{ended:?}");
        let served = node(&targets[won[0]]).unwrap();
        assert_eq!(served.redis_cli(&["INCR", "seq:a"]), "2");
        assert!(node(&from).err().unwrap().contains("was left for"));
        if won[0] == 1 {
            let refused = node(&targets[0]).err().unwrap();
            assert!(refused.contains("holds no Bates store"), "the refused move has made nothing: {refused}");
        } else {
            let made = folder.path().join(format!("two{round}"));
            assert!(!made.exists(), "the refused move has made nothing: {}", made.display());
        }
    }
}

/// A kill at any write leaves a target that refuses to serve, or none, or one that has everything.
#[test]
fn a_move_that_is_killed_leaves_nothing_half_done_that_is_served() {
    let server = PrivatePostgres::start().unwrap();
    let folder = TempDir::new().unwrap();
    for (round, nth) in [1, 2, 4, 7, 11, 16, 22, 29, 37, 46, 56, 70].into_iter().enumerate() {
        let from = format!("sqlite:{}", folder.path().join(format!("from{round}")).display());
        let source = node(&from).unwrap();
        assert_eq!(source.redis_cli(&["INCR", "seq:a"]), "1");
        source.stop();
        let to = if round % 2 == 0 {
            database(&server, &format!("to{round}"))
        } else {
            format!("sqlite:{}", folder.path().join(format!("to{round}")).display())
        };
        finished(doomed(&from, &to, nth));
        // As long as the old store is served, nothing was moved.
        if let Ok(source) = node(&from) {
            assert_eq!(source.redis_cli(&["INCR", "seq:a"]), "2", "killed at write {nth}");
            continue;
        }
        if let Ok(served) = node(&to) {
            assert_eq!(served.redis_cli(&["INCR", "seq:a"]), "2", "at write {nth} everything had arrived");
            continue;
        }
        let (is_done, said) = finished(mover(&from, &to));
        assert!(is_done, "after write {nth}: {said}");
        assert!(node(&from).err().unwrap().contains("was left for"));
        assert_eq!(node(&to).unwrap().redis_cli(&["INCR", "seq:a"]), "2");
    }
}

#[test]
fn a_move_into_a_store_that_is_in_use_is_refused_and_the_old_one_goes_on() {
    let server = PrivatePostgres::start().unwrap();
    let (from, to) = (database(&server, "old"), database(&server, "new"));
    let source = Server::node(&from);
    assert_eq!(source.redis_cli(&["INCR", "seq:a"]), "1");
    source.stop();
    Server::node(&to).stop();
    let (is_done, said) = finished(mover(&from, &to));
    assert!(!is_done && said.contains("has series of its own"), "{said}");
    assert_eq!(node(&from).unwrap().redis_cli(&["INCR", "seq:a"]), "2", "nothing was changed");
}

/// A node that stands still holds numbers, and a floor in the new store would not know of them.
#[test]
fn a_move_beside_a_node_that_stands_still_is_refused_unless_the_risk_is_accepted() {
    let server = PrivatePostgres::start().unwrap();
    let (from, to) = (database(&server, "before"), database(&server, "after"));
    let (still, other) = (Server::node(&from), Server::node(&from));
    assert_eq!(still.redis_cli(&["INCR", "seq:a"]), "1");
    assert_eq!(other.redis_cli(&["INCR", "seq:b"]), "1");
    still.redis_cli(&["LPOP", "short"]);
    still.signal("STOP");
    let with = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.arg("move-store").args(more).args([&from, &to]).stdout(Stdio::piped()).stderr(Stdio::piped());
        finished(command.spawn().unwrap())
    };
    let (is_done, said) = with(&["--wait", "3"]);
    assert!(!is_done && said.contains(&format!("process {}", still.pid())), "{said}");
    assert!(!said.contains(&format!("process {}", other.pid())), "the other one has answered: {said}");
    assert_eq!(other.redis_cli(&["INCR", "seq:b"]), "2", "the old store goes on");
    let (is_done, said) = with(&["--wait", "1", "--accept-risk"]);
    assert!(is_done && said.contains(&format!("process {}", still.pid())), "{said}");
}
