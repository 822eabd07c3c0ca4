//! The embedded store passes the suite that every store must pass.

use std::process::Command;

use bates_core::{Move, MoveMark};
use bates_sqlite::{OpenMode, SqliteStore};
use bates_testkit::{DataSet, check_random_histories, conformance, exercise_move};
use tempfile::TempDir;
use uuid::Uuid;

struct InFolder(TempDir);

impl DataSet for InFolder {
    type Store = SqliteStore;

    async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.0.path(), OpenMode::First).unwrap()
    }
}

async fn fresh() -> InFolder {
    InFolder(TempDir::new().unwrap())
}

conformance!(super::fresh);

#[test]
fn random_histories_match_the_model() {
    check_random_histories(fresh, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_moves_between_folders_and_serves_in_only_one() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let open = |folder: &TempDir| SqliteStore::open(folder.path(), OpenMode::First);
    drop(exercise_move(&open(&from).unwrap(), open(&to).unwrap()).await);
    let left = open(&from).err().unwrap().to_string();
    assert!(left.contains("was left for to"), "{left}");
    let new = TempDir::new().unwrap();
    let mark = MoveMark::Arriving(Move { id: Uuid::now_v7(), run: Uuid::now_v7(), other: "from".into() });
    drop(SqliteStore::open_arriving(new.path(), &mark).unwrap());
    let arriving = open(&new).err().unwrap().to_string();
    assert!(
        arriving.contains("is being filled from from"),
        "a store created by a move is marked at once: {arriving}"
    );
}

/// Runs one test of the suite with a planted bug, in a new process, because the bug is chosen by the
/// environment.
#[test]
fn a_store_that_releases_without_a_comparison_fails_the_suite() {
    let run = |bug: Option<&str>| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "conformance::store::a_range_is_released_once_and_only_if_nothing_was_granted_since",
        ]);
        command.env_remove("BATES_PLANTED_BUG").envs(bug.map(|bug| ("BATES_PLANTED_BUG", bug)));
        command.output().unwrap()
    };
    let good = run(None);
    assert!(good.status.success() && String::from_utf8_lossy(&good.stdout).contains("1 passed"));
    let bad = run(Some("release-without-compare"));
    let output = String::from_utf8_lossy(&bad.stdout) + String::from_utf8_lossy(&bad.stderr);
    assert!(!bad.status.success() && output.contains("1 failed"), "{output}");
    assert!(output.contains("left: Ok(Returned)") && output.contains("right: Ok(Gap)"), "{output}");
}
