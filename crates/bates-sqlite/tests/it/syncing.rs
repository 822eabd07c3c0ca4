//! What is synced, in which order, as strace sees it; and what becomes of a store whose syncs fail.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use bates_sqlite::{OpenError, OpenMode, SqliteStore};
use tempfile::TempDir;

use super::damage::{LOG, copy};
use super::granting::{Answered, Granting, repeated};

/// The calls of a process that opens a store in the folder and closes it, one a line, each file by its path.
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
fn every_folder_that_is_made_is_synced_and_so_is_the_one_above() {
    let parent = TempDir::new().unwrap();
    let parent = parent.path().canonicalize().unwrap();
    let calls = calls(&parent.join("a/b/data"), "fsync,pwrite64");
    let written = calls.iter().position(|line| line.contains("pwrite64(")).unwrap();
    for folder in ["", "a", "a/b", "a/b/data"] {
        let folder = if folder.is_empty() { parent.clone() } else { parent.join(folder) };
        let synced = position(&calls, "fsync", &folder);
        assert!(synced.is_some_and(|at| at < written), "{}: {synced:?} of {written}", folder.display());
    }
}

#[test]
fn the_log_that_a_crash_left_is_copied_and_synced_before_it_is_read() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    Granting::start(&folder).kill_after(50);
    let calls = calls(&folder, "fsync,rename,pread64");
    let synced = position(&calls, "fsync", &folder.join("bates.db-wal-copy")).expect("the copy is synced");
    let is_rename = |line: &String| line.contains("rename(") && line.contains("bates.db-wal-copy");
    let renamed = calls.iter().position(is_rename).expect("the copy replaces the log");
    let read = position(&calls, "pread64", &folder.join(LOG)).expect("SQLite reads the log");
    let named = calls[renamed..].iter().position(|line| line.contains(&format!("<{}>)", folder.display())));
    assert!(synced < renamed && renamed + named.unwrap() < read, "{calls:#?}");
}

/// Syncs fail from one of them on, under load: each process stops answering, and the next one has all that was answered.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_sync_left_in_memory_is_not_built_upon() {
    let folder = TempDir::new().unwrap();
    let (mut highest, mut refused) = (Answered::new(), 0);
    for nth in 1..=24 {
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={nth}+");
        let strace = ["-o", "/dev/null", "-e", &inject].map(OsStr::new);
        let (answered, is_over) = Granting::start_once(folder.path(), &strace).wait();
        refused += u32::from(!is_over);
        highest.extend(answered);
        let whole = copy(folder.path());
        for folder in [whole.path(), folder.path()] {
            let store =
                SqliteStore::open(folder, OpenMode::First).unwrap_or_else(|error| panic!("{nth}: {error}"));
            assert_eq!(repeated(&store, &highest).await, [0_usize; 0], "syncs failed from {nth} on");
        }
    }
    assert!(
        refused > 0 && !highest.is_empty(),
        "{refused} starts were refused, {} scopes answered",
        highest.len()
    );
}

/// The process that has the database open: a test that is run again, by its name.
#[test]
fn a_process_reads_the_database_until_its_input_ends() {
    let Some(folder) = std::env::var_os("BATES_TEST_READING_FOLDER") else { return };
    let database = rusqlite::Connection::open(Path::new(&folder).join("bates.db")).unwrap();
    let version: u32 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    std::io::stdout().write_all(format!("\nread {version}\n").as_bytes()).unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// It would go on with the log that was replaced, and write pages of it into the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_store_that_another_program_has_open_is_refused_until_that_ends() {
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
    // A crash of its own: it neither writes the log into the database nor removes it.
    reading.kill().unwrap();
    reading.wait().unwrap();
    let store = SqliteStore::open(folder.path(), OpenMode::First).unwrap();
    assert_eq!(repeated(&store, &answered).await, [0_usize; 0]);
}
