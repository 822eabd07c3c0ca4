//! Servers on a data folder that was damaged, or that an operator tidied up: they refuse, say what to do, and issue no
//! number twice afterwards.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::running::{Client, Server};

const COUNTERS: u64 = 40;

fn copy(from: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

/// A server with a bug, if one is named; its last words if it refuses to start.
fn try_start(data: &Path, bug: Option<&str>) -> Result<Server, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.envs(bug.map(|bug| ("BATES_PLANTED_BUG", bug)));
    Server::try_start(command, data, "127.0.0.1:0")
}

fn bates(data: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    for variable in ["BATES_STORE", "BATES_CONFIG", "BATES_PLANTED_BUG"] {
        command.env_remove(variable);
    }
    let output = command.args(arguments).arg("--data").arg(data).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The next number of each counter.
fn take(server: &Server) -> Vec<u64> {
    let mut client = Client::connect(server.port).unwrap();
    (0..COUNTERS).map(|counter| client.incr(&format!("counter:{counter}")).unwrap()).collect()
}

/// What a server leaves that is killed, and the numbers that it gave.
fn killed() -> (TempDir, Vec<u64>) {
    let data = TempDir::new().unwrap();
    let server = Server::start(data.path());
    let taken = take(&server);
    server.kill();
    (data, taken)
}

fn flip(data: &Path, byte: u64) {
    let log = File::options().read(true).write(true).open(data.join("bates.db-wal")).unwrap();
    let mut found = [0];
    log.read_exact_at(&mut found, byte).unwrap();
    log.write_all_at(&[found[0] ^ 4], byte).unwrap();
}

/// Flips a bit in one place of the log after the other. Answers how many copies were refused; an error if a server
/// gives a number again.
fn repeats_none_from_a_damaged_log(bug: Option<&str>) -> Result<u32, String> {
    let (data, taken) = killed();
    let length = fs::metadata(data.path().join("bates.db-wal")).unwrap().len();
    let mut refused = 0;
    for byte in (5..length).step_by(usize::try_from(length / 12).unwrap()) {
        let copy = copy(data.path());
        flip(copy.path(), byte);
        match try_start(copy.path(), bug) {
            Err(said) if said.contains("bates floor --accept-loss") => refused += 1,
            Err(said) => return Err(format!("byte {byte}: {said}")),
            Ok(server) => {
                let again = take(&server);
                if let Some(at) = (0..taken.len()).find(|at| again[*at] <= taken[*at]) {
                    return Err(format!("byte {byte}: counter {at} gave {}, and {}", taken[at], again[at]));
                }
            }
        }
    }
    Ok(refused)
}

#[test]
fn a_flipped_bit_in_the_log_of_a_killed_server_repeats_no_number() {
    let refused = repeats_none_from_a_damaged_log(None).unwrap();
    assert!(refused >= 10, "{refused} refused");
}

#[test]
fn a_server_that_opens_although_commits_are_missing_is_caught() {
    let caught = repeats_none_from_a_damaged_log(Some("open-below-answered")).unwrap_err();
    assert!(caught.contains(" gave 1, and 1"), "{caught}");
}

/// As docs/operations.md says.
#[test]
fn a_damaged_store_is_served_again_once_its_cursors_are_raised_and_the_loss_is_accepted() {
    let (data, taken) = killed();
    flip(data.path(), fs::metadata(data.path().join("bates.db-wal")).unwrap().len() / 2);
    let refused = try_start(data.path(), None).err().unwrap();
    assert!(refused.contains("end at commit ") && refused.contains("bates floor"), "{refused}");
    for counter in 0..COUNTERS {
        // Whatever restarts the server meanwhile does not get it to issue.
        assert!(try_start(data.path(), None).is_err());
        bates(data.path(), &["floor", "counter", &format!("name={counter}"), "1000"]);
    }
    let refused = try_start(data.path(), None).err().unwrap();
    assert!(refused.contains("bates floor --accept-loss"), "{refused}");
    assert!(bates(data.path(), &["floor", "--accept-loss"]).contains("issues again"));
    let again = take(&try_start(data.path(), None).unwrap());
    assert!(again.iter().zip(&taken).all(|(again, taken)| again > taken), "{again:?}");
}

/// Fault 13. An operator who tidies up may remove any file.
#[test]
fn a_second_server_is_refused_whatever_files_are_removed_or_replaced() {
    let data = TempDir::new().unwrap();
    let server = Server::start(data.path());
    let taken = take(&server);
    let is_refused = || {
        let refused = try_start(data.path(), None).err().expect("a second server");
        assert!(refused.contains("is in use by another process"), "{refused}");
    };
    is_refused();
    let state = data.path().join("bates.state");
    fs::remove_file(&state).unwrap();
    is_refused();
    fs::write(&state, "").unwrap();
    is_refused();
    server.stop();
    let again = take(&Server::start(data.path()));
    assert!(again.iter().zip(&taken).all(|(again, taken)| again > taken), "{again:?}");
}
