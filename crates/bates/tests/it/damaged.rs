//! Servers on a data folder that is damaged, or in which an operator removed files: they refuse, name the remedy, and
//! afterwards issue no number twice.

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

/// Starts a server, with a planted bug if one is named; its error output if it refuses to start.
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

/// Takes the next number of each counter.
fn take(server: &Server) -> Vec<u64> {
    let mut client = Client::connect(server.port).unwrap();
    (0..COUNTERS).map(|counter| client.incr(&format!("counter:{counter}")).unwrap()).collect()
}

/// The data folder of a killed server, and the numbers that it issued.
fn killed_server() -> (TempDir, Vec<u64>) {
    let data = TempDir::new().unwrap();
    let server = Server::start(data.path());
    let taken = take(&server);
    server.kill();
    (data, taken)
}

/// Flips a bit of the log.
fn flip_bit(data: &Path, byte: u64) {
    let log = File::options().read(true).write(true).open(data.join("bates.db-wal")).unwrap();
    let mut value = [0];
    log.read_exact_at(&mut value, byte).unwrap();
    log.write_all_at(&[value[0] ^ 4], byte).unwrap();
}

/// Flips a bit of the log, at one place after the other, each in a copy of the folder. Returns how many copies were
/// refused, or an error if a server issued a number again.
fn check_damaged_logs(bug: Option<&str>) -> Result<u32, String> {
    let (data, taken) = killed_server();
    let length = fs::metadata(data.path().join("bates.db-wal")).unwrap().len();
    let mut refused = 0;
    for byte in (5..length).step_by(usize::try_from(length / 12).unwrap()) {
        let copy = copy(data.path());
        flip_bit(copy.path(), byte);
        match try_start(copy.path(), bug) {
            Err(stderr) if stderr.contains("bates floor --accept-loss") => refused += 1,
            Err(stderr) => return Err(format!("byte {byte}: {stderr}")),
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
    let refused = check_damaged_logs(None).unwrap();
    assert!(refused >= 10, "{refused} refused");
}

#[test]
fn a_server_that_opens_despite_missing_commits_is_caught() {
    let caught = check_damaged_logs(Some("open-below-answered")).unwrap_err();
    assert!(caught.contains(" gave 1, and 1"), "{caught}");
}

/// The procedure of docs/operations.md.
#[test]
fn a_damaged_store_is_served_again_once_its_cursors_are_raised_and_the_loss_is_accepted() {
    let (data, taken) = killed_server();
    flip_bit(data.path(), fs::metadata(data.path().join("bates.db-wal")).unwrap().len() / 2);
    let refused = try_start(data.path(), None).err().unwrap();
    assert!(refused.contains("end at commit ") && refused.contains("bates floor"), "{refused}");
    for counter in 0..COUNTERS {
        // A supervisor that restarts the server meanwhile does not make it issue.
        assert!(try_start(data.path(), None).is_err());
        bates(data.path(), &["floor", "counter", &format!("name={counter}"), "1000"]);
    }
    let refused = try_start(data.path(), None).err().unwrap();
    assert!(refused.contains("bates floor --accept-loss"), "{refused}");
    assert!(bates(data.path(), &["floor", "--accept-loss"]).contains("issues again"));
    let again = take(&try_start(data.path(), None).unwrap());
    assert!(again.iter().zip(&taken).all(|(again, taken)| again > taken), "{again:?}");
}

/// Fault 13: an operator may remove any file.
#[test]
fn a_second_server_is_refused_even_after_files_are_removed_or_replaced() {
    let data = TempDir::new().unwrap();
    let server = Server::start(data.path());
    let taken = take(&server);
    let assert_refused = || {
        let refused = try_start(data.path(), None).err().expect("a second server");
        assert!(refused.contains("is in use by another process"), "{refused}");
    };
    assert_refused();
    let state = data.path().join("bates.state");
    fs::remove_file(&state).unwrap();
    assert_refused();
    fs::write(&state, "").unwrap();
    assert_refused();
    server.stop();
    let again = take(&Server::start(data.path()));
    assert!(again.iter().zip(&taken).all(|(again, taken)| again > taken), "{again:?}");
}
