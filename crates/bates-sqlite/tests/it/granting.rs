//! Runs this test binary again as a process that grants positions and prints them, for tests that kill it or
//! make its system calls fail.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{Definition, GrantPurpose, GrantRequest, ScopeId, ScopeKey};
use bates_sqlite::{OpenMode, SqliteStore};
use bates_testkit::programs;

/// The folder of the store.
const FOLDER: &str = "BATES_TEST_GRANTING_FOLDER";

/// How many callers the process has, and how many grants each requests before the process closes the store.
const CALLERS: &str = "BATES_TEST_GRANTING_CALLERS";
const ROUNDS: &str = "BATES_TEST_GRANTING_ROUNDS";

const TEST_NAME: &str = "granting::a_process_grants_positions_and_prints_them";

/// With their long names, these scopes fill several pages of the database.
pub(crate) const SCOPES: usize = 64;

/// The end of the highest range that was answered, by scope.
pub(crate) type Answered = BTreeMap<usize, u64>;

pub(crate) fn scope_id(scope: usize) -> ScopeId {
    let scope = ScopeKey::new([("name", &*format!("{scope:0>200}"))], None).unwrap();
    ScopeId { series: "counter".parse().unwrap(), scope }
}

pub(crate) async fn pin(store: &SqliteStore) {
    let definition = Definition {
        series: "counter".parse().unwrap(),
        template: "{seq}".into(),
        parameters: "name".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
        rules: None,
    };
    store.pin(definition, None).await.unwrap();
}

/// Grants three positions; returns the end of the range, or `None` if the grant failed.
pub(crate) async fn grant(store: &SqliteStore, scope: usize) -> Option<u64> {
    let request = GrantRequest {
        scope_id: scope_id(scope),
        count: 3,
        count_needed: 3,
        start: 1,
        end: 1 << 40,
        scopes_max: SCOPES as u64,
        purpose: GrantPurpose::HandOut,
        promise: None,
        held_from: None,
    };
    store.grant(request).await.ok().map(|grant| grant.range.to())
}

/// Each caller requests `rounds` grants, or stops at the first error.
async fn request_grants(folder: &Path, callers: usize, rounds: usize) {
    let store = Arc::new(SqliteStore::open(folder, OpenMode::First).unwrap());
    pin(&store).await;
    let callers = (0..callers).map(|caller| {
        let store = store.clone();
        tokio::spawn(async move {
            for round in 0..rounds {
                let scope = (caller + round) % SCOPES;
                let Some(to) = grant(&store, scope).await else { return };
                // One write per line, so that a kill cuts off only the last line.
                let line = format!("\nanswered {scope} {to}\n");
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    std::io::stdout().write_all(b"\nclosing\n").unwrap();
}

/// Without the variable it does nothing.
#[test]
fn a_process_grants_positions_and_prints_them() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let [callers, rounds] = [CALLERS, ROUNDS].map(|name| env::var(name).unwrap().parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(request_grants(Path::new(&folder), callers, rounds));
}

/// The process that grants.
pub(crate) struct Granting {
    child: Child,
    output: BufReader<ChildStdout>,
    printed: Vec<u8>,
}

impl Granting {
    /// Starts eight callers that request grants until the process is killed.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::run(folder, [8, usize::MAX], &[])
    }

    /// Starts one caller per scope that requests one grant; then the process closes the store. With arguments
    /// for strace, the process runs under strace.
    pub(crate) fn start_once(folder: &Path, strace: &[&OsStr]) -> Self {
        Self::run(folder, [SCOPES, 1], strace)
    }

    fn run(folder: &Path, [callers, rounds]: [usize; 2], strace: &[&OsStr]) -> Self {
        let binary = env::current_exe().unwrap();
        let mut command = if strace.is_empty() {
            Command::new(binary)
        } else {
            let program =
                programs::find("strace").expect("strace; run `cargo xtask test`, which installs it");
            let mut command = Command::new(program);
            command.args(["-f", "-qq"]).args(strace).arg(binary);
            command
        };
        command.args([TEST_NAME, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER, folder).env(CALLERS, callers.to_string()).env(ROUNDS, rounds.to_string());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, printed: Vec::new() }
    }

    /// Waits for this number of answers, then kills the process. Every line in the pipe counts as answered.
    pub(crate) fn kill_after(mut self, answers: usize) -> Answered {
        for _ in 0..answers * 2 {
            assert!(
                self.output.read_until(b'\n', &mut self.printed).unwrap() > 0,
                "the process ended by itself"
            );
        }
        self.child.kill().unwrap();
        self.wait().0
    }

    /// Waits for the end of the process; returns also whether it closed the store and exited with success.
    pub(crate) fn wait(mut self) -> (Answered, bool) {
        self.output.read_to_end(&mut self.printed).unwrap();
        let is_over = self.child.wait().unwrap().success();
        let whole = self.printed.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        let mut answered = Answered::new();
        for line in std::str::from_utf8(&self.printed[..whole]).unwrap().lines() {
            let Some((scope, to)) = line.strip_prefix("answered ").and_then(|line| line.split_once(' '))
            else {
                continue;
            };
            let highest: &mut u64 = answered.entry(scope.parse().unwrap()).or_default();
            *highest = (*highest).max(to.parse().unwrap());
        }
        (answered, is_over)
    }
}

/// The scopes in which the store would grant answered positions again.
pub(crate) async fn repeated(store: &SqliteStore, answered: &Answered) -> Vec<usize> {
    let mut repeated = Vec::new();
    for (scope, to) in answered {
        let cursor = store.cursor(scope_id(*scope)).await.unwrap();
        if cursor.is_none_or(|cursor| cursor.next < *to) {
            repeated.push(*scope);
        }
    }
    repeated
}
