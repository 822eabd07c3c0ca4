//! A process that embeds the numbering machine is killed under load, again and again. What it told before must not
//! come again.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bates::{Bates, Limits, Promise, Series};
use bates_testkit::history::{Gaps, History, Rules, Violation};
use tempfile::tempdir;

/// Where the process that is to be killed keeps its numbers.
const FOLDER: &str = "BATES_TEST_EMBEDDED_FOLDER";

/// The process itself: a test that is run again, by its name.
const ITSELF: &str = "embed::crash::a_process_tells_numbers_as_it_takes_them";

const TASKS: u64 = 4;
const LEASE_MAX: u64 = 256;
const KILLS: u64 = 8;

async fn open(folder: &Path) -> Bates {
    let limits = Limits { lease_max: LEASE_MAX, ..Limits::default() };
    let series = Series::new("n", "{seq}").promise(Promise::Ordered).limits(limits);
    Bates::open(folder, [series]).await.unwrap()
}

/// Takes numbers in several tasks, in both ways, and tells each before the next is taken.
async fn tell(folder: &Path, each: u64) {
    let bates = open(folder).await;
    let tasks = (0..TASKS).map(|_| {
        let numbering = bates.series("n").unwrap();
        tokio::spawn(async move {
            for _ in 0..each {
                let number = match numbering.try_next() {
                    Ok(number) => number,
                    Err(_) => numbering.next().await.unwrap(),
                };
                // One write a line, so that a kill cuts off no more than the last.
                std::io::stdout().write_all(format!("took {number}\n").as_bytes()).unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    bates.close().await.unwrap();
}

/// As a test of its own it ends by itself; as the process that is to be killed, it does not.
#[test]
fn a_process_tells_numbers_as_it_takes_them() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    match env::var_os(FOLDER) {
        Some(folder) => runtime.block_on(tell(Path::new(&folder), u64::MAX)),
        None => {
            let folder = tempdir().unwrap();
            runtime.block_on(tell(folder.path(), 10));
            let next =
                runtime.block_on(async { open(folder.path()).await.series("n").unwrap().next().await });
            assert_eq!(next.unwrap(), &*format!("{}", TASKS * 10 + 1));
        }
    }
}

/// What the process told until it was killed, after so many lines.
fn told_until_killed(folder: &Path, lines: usize, bug: Option<&str>) -> BTreeSet<u64> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([ITSELF, "--exact", "--nocapture"]).env(FOLDER, folder).env_remove("BATES_PLANTED_BUG");
    command.envs(bug.map(|bug| ("BATES_PLANTED_BUG", bug)));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    for _ in 0..lines {
        assert!(output.read_until(b'\n', &mut said).unwrap() > 0, "it ended by itself");
    }
    // SIGKILL. What is in the pipe was told before.
    child.kill().unwrap();
    output.read_to_end(&mut said).unwrap();
    child.wait().unwrap();
    let whole = said.iter().rposition(|byte| *byte == b'\n').unwrap();
    let lines = std::str::from_utf8(&said[..whole]).unwrap().lines();
    let mut told = BTreeSet::new();
    for number in lines.filter_map(|line| line.strip_prefix("took ")) {
        assert!(told.insert(number.parse().unwrap()), "{number} came twice from one process");
    }
    told
}

/// What contradicts the promise, after kills at different moments.
fn violations_after_kills(bug: Option<&str>) -> Vec<Violation> {
    let (folder, history) = (tempdir().unwrap(), History::default());
    let scope = history.scope("n");
    for kill in 0..KILLS {
        let mut client = history.client();
        let asked = client.ask(scope);
        let told = told_until_killed(folder.path(), 100 + usize::try_from(kill).unwrap() * 357, bug);
        client.answered_with(asked, told.into_iter().map(|number| (number, number)));
    }
    // A lease in use, the next one, and what was taken and not told.
    let skipped_max = KILLS * (LEASE_MAX * 5 / 4 + TASKS);
    history.check(Rules { is_ordered: true, gaps: Gaps::AtMost { start: 1, skipped_max } })
}

#[test]
fn killed_under_load_it_repeats_no_number_and_skips_no_more_than_its_leases() {
    let violations = violations_after_kills(None);
    assert!(violations.is_empty(), "{:?}", violations.first());
}

#[test]
fn a_store_that_answers_before_it_commits_is_caught() {
    let violations = violations_after_kills(Some("answer-before-commit"));
    assert!(violations.iter().any(|found| matches!(found, Violation::Repeated { .. })), "{violations:?}");
}
