//! Which files are synced and in which order, as strace shows; and stores whose syncs fail.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use bates_sqlite::{OpenError, OpenMode, SqliteStore};
use tempfile::TempDir;

use super::damage::{LOG, copy};
use super::granting::{Answered, Granting, repeated};

/// The system calls of a process that opens and closes a store in the folder: one per line, with file paths.
fn calls(folder: &Path, names: &str) -> Vec<String> {
    let output = TempDir::new().unwrap();
    let (trace, filter) = (output.path().join("trace"), format!("trace={names}"));
    let strace = [OsStr::new("-y"), "-o".as_ref(), trace.as_os_str(), "-e".as_ref(), filter.as_ref()];
    assert!(Granting::start_once(folder, &strace).wait().1);
    fs::read_to_string(trace).unwrap().lines().map(str::to_owned).collect()
}

fn position(calls: &[String], call: &str, file: &Path) -> Option<usize> {
    let (call, file) = (format!("{call}("), format!("<{}>", file.display()));
    calls.iter().position(|line| line.contains(&call) && line.contains(&file))
}

#[test]
fn every_created_folder_and_its_parent_are_synced() {
    let parent = TempDir::new().unwrap();
    let parent = parent.path().canonicalize().unwrap();
    let calls = calls(&parent.join("a/b/data"), "fsync,pwrite64");
    let written = calls.iter().position(|line| line.contains("pwrite64(")).unwrap();
    for folder in ["", "a", "a/b", "a/b/data"] {
        let folder = if folder.is_empty() { parent.clone() } else { parent.join(folder) };
        let synced = position(&calls, "fsync", &folder);
        assert!(
            synced.is_some_and(|at| at < written),
            "{}: synced at {synced:?}, first write at {written}",
            folder.display()
        );
    }
}

#[test]
fn the_log_of_a_crashed_store_is_copied_and_synced_before_it_is_read() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    Granting::start(&folder).kill_after(50);
    let calls = calls(&folder, "fsync,rename,pread64");
    let synced = position(&calls, "fsync", &folder.join("bates.db-wal-copy")).expect("the copy is synced");
    let is_rename = |line: &String| line.contains("rename(") && line.contains("bates.db-wal-copy");
    let renamed = calls.iter().position(is_rename).expect("the copy replaces the log");
    let read = position(&calls, "pread64", &folder.join(LOG)).expect("SQLite reads the log");
    let folder_synced =
        calls[renamed..].iter().position(|line| line.contains(&format!("<{}>)", folder.display())));
    assert!(synced < renamed && renamed + folder_synced.unwrap() < read, "{calls:#?}");
}

/// All syncs fail after the n-th. The process stops answering, and the next one has every answered position.
#[tokio::test(flavor = "multi_thread")]
async fn no_answered_position_is_lost_when_syncs_fail() {
    let folder = TempDir::new().unwrap();
    let (mut highest, mut refused) = (Answered::new(), 0);
    for nth in 1..=24 {
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={nth}+");
        let strace = ["-o", "/dev/null", "-e", &inject].map(OsStr::new);
        let (answered, is_over) = Granting::start_once(folder.path(), &strace).wait();
        refused += u32::from(!is_over);
        highest.extend(answered);
        let copied = copy(folder.path());
        for folder in [copied.path(), folder.path()] {
            let store =
                SqliteStore::open(folder, OpenMode::First).unwrap_or_else(|error| panic!("{nth}: {error}"));
            assert_eq!(repeated(&store, &highest).await, [0_usize; 0], "syncs failed from {nth} on");
        }
    }
    assert!(refused > 0 && !highest.is_empty(), "{refused} runs stopped, {} scopes answered", highest.len());
}

/// Runs as another process that keeps the database open. Without the variable it does nothing.
#[test]
fn a_process_reads_the_database_until_its_input_ends() {
    let Some(folder) = std::env::var_os("BATES_TEST_READING_FOLDER") else { return };
    let database = rusqlite::Connection::open(Path::new(&folder).join("bates.db")).unwrap();
    let version: u32 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    std::io::stdout().write_all(format!("\nread {version}\n").as_bytes()).unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// The other program would continue with the replaced log, and write its pages into the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_store_is_refused_while_another_program_has_it_open() {
    let folder = TempDir::new().unwrap();
    let answered = Granting::start(folder.path()).kill_after(20);
    let mut reading = Command::new(std::env::current_exe().unwrap())
        .args(["syncing::a_process_reads_the_database_until_its_input_ends", "--exact", "--nocapture"])
        .env("BATES_TEST_READING_FOLDER", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(reading.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.take_while(|line| !line.starts_with("read ")).count() > 0);
    let refused = SqliteStore::open(folder.path(), OpenMode::First).err().unwrap();
    assert!(matches!(refused, OpenError::DatabaseInUse(_)), "{refused}");
    // Killed, the reader neither writes the log into the database nor removes it.
    reading.kill().unwrap();
    reading.wait().unwrap();
    let store = SqliteStore::open(folder.path(), OpenMode::First).unwrap();
    assert_eq!(repeated(&store, &answered).await, [0_usize; 0]);
}
