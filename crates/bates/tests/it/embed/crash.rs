//! A process that embeds the library is killed repeatedly under load. It must never repeat a number that it printed.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bates::{Bates, Limits, Promise, Series};
use bates_testkit::history::{Gaps, History, Rules, Violation};
use tempfile::tempdir;

/// The variable that names the folder of the process to be killed.
const FOLDER: &str = "BATES_TEST_EMBEDDED_FOLDER";

/// The process to be killed: this test binary, running only this test.
const CHILD_TEST: &str = "embed::crash::a_process_prints_numbers_as_it_takes_them";

const TASKS: u64 = 4;
const RANGE_MAX: u64 = 256;
const KILLS: u64 = 8;

async fn open(folder: &Path) -> Bates {
    let limits = Limits { lease_max: RANGE_MAX, ..Limits::default() };
    let series = Series::new("n", "{seq}").promise(Promise::Ordered).limits(limits);
    Bates::open(folder, [series]).await.unwrap()
}

/// Takes numbers in several tasks, with both calls, and prints each before it takes the next.
async fn print_numbers(folder: &Path, each: u64) {
    let bates = open(folder).await;
    let tasks = (0..TASKS).map(|_| {
        let numbering = bates.series("n").unwrap();
        tokio::spawn(async move {
            for _ in 0..each {
                let number = match numbering.try_next() {
                    Ok(number) => number,
                    Err(_) => numbering.next().await.unwrap(),
                };
                // One write per line, so that a kill truncates at most the last line.
                std::io::stdout().write_all(format!("took {number}\n").as_bytes()).unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    bates.close().await.unwrap();
}

/// Run as a test, this ends by itself; run as the process to be killed, it does not.
#[test]
fn a_process_prints_numbers_as_it_takes_them() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    match env::var_os(FOLDER) {
        Some(folder) => runtime.block_on(print_numbers(Path::new(&folder), u64::MAX)),
        None => {
            let folder = tempdir().unwrap();
            runtime.block_on(print_numbers(folder.path(), 10));
            let next =
                runtime.block_on(async { open(folder.path()).await.series("n").unwrap().next().await });
            assert_eq!(next.unwrap(), &*format!("{}", TASKS * 10 + 1));
        }
    }
}

/// Kills the process after this many lines, and returns all numbers that it printed.
fn printed_until_killed(folder: &Path, lines: usize, bug: Option<&str>) -> BTreeSet<u64> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([CHILD_TEST, "--exact", "--nocapture"]).env(FOLDER, folder).env_remove("BATES_PLANTED_BUG");
    command.envs(bug.map(|bug| ("BATES_PLANTED_BUG", bug)));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut bytes = Vec::new();
    for _ in 0..lines {
        assert!(output.read_until(b'\n', &mut bytes).unwrap() > 0, "it ended by itself");
    }
    // SIGKILL. The process printed the rest of the pipe before the kill.
    child.kill().unwrap();
    output.read_to_end(&mut bytes).unwrap();
    child.wait().unwrap();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap();
    let lines = std::str::from_utf8(&bytes[..end]).unwrap().lines();
    let mut printed = BTreeSet::new();
    for number in lines.filter_map(|line| line.strip_prefix("took ")) {
        assert!(printed.insert(number.parse().unwrap()), "{number} came twice from one process");
    }
    printed
}

/// The violations of the promise after kills at different moments.
fn violations_after_kills(bug: Option<&str>) -> Vec<Violation> {
    let (folder, history) = (tempdir().unwrap(), History::default());
    let scope = history.scope("n");
    for kill in 0..KILLS {
        let mut client = history.client();
        let request = client.ask(scope);
        let printed = printed_until_killed(folder.path(), 100 + usize::try_from(kill).unwrap() * 357, bug);
        client.answered_with(request, printed.into_iter().map(|number| (number, number)));
    }
    // Each kill loses the range in use, the next one, and a number per task that was taken and not printed.
    let skipped_max = KILLS * (RANGE_MAX * 5 / 4 + TASKS);
    history.check(Rules { is_ordered: true, gaps: Gaps::AtMost { start: 1, skipped_max } })
}

#[test]
fn a_process_killed_under_load_repeats_no_number_and_skips_no_more_than_its_ranges() {
    let violations = violations_after_kills(None);
    assert!(violations.is_empty(), "{:?}", violations.first());
}

#[test]
fn a_store_that_answers_before_it_commits_is_caught() {
    let violations = violations_after_kills(Some("answer-before-commit"));
    assert!(violations.iter().any(|found| matches!(found, Violation::Repeated { .. })), "{violations:?}");
}
