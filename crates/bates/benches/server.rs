//! A `bates serve` process on loopback ports, and what the kernel says about a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) struct Server {
    child: Child,
    /// 0 if the port is off.
    pub(crate) http: u16,
    pub(crate) resp: u16,
    /// From the start of the process until it listens.
    pub(crate) started_in: Duration,
    /// Removed with it.
    data: Option<TempDir>,
}

pub(crate) fn bates() -> Command {
    Command::new(env!("CARGO_BIN_EXE_bates"))
}

/// Makes the tables of a store if they are missing: several nodes use them.
pub(crate) fn migrate(store: &str) {
    assert!(
        bates().arg("migrate").env("BATES_STORE", store).stdout(Stdio::null()).status().unwrap().success()
    );
}

impl Server {
    /// With a new embedded store, the built-in series, and both ports.
    pub(crate) fn start() -> Self {
        let data = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut command = bates();
        command
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data"])
            .arg(data.path())
            .arg("--new");
        let mut server = Self::from(&mut command);
        server.data = Some(data);
        server
    }

    /// Of a command that serves.
    pub(crate) fn from(command: &mut Command) -> Self {
        let started = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut port = |name: &str| {
            let line = lines.find(|line| line.trim_start().starts_with(name)).expect("the server starts");
            line.rsplit_once(':').map_or(0, |(_, port)| port.parse().unwrap())
        };
        let (http, resp) = (port("HTTP"), port("Redis protocol"));
        let started_in = started.elapsed();
        // A server would block if its output were not read.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, http, resp, started_in, data: None }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as an operator does, and returns how long that took.
    pub(crate) fn stop(mut self) -> Duration {
        let began = Instant::now();
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
        began.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// User and system time of all threads so far.
pub(crate) fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // The kernel reports hundredths of a second.
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// Waits until a process has nothing left to do, some seconds at most.
pub(crate) fn settle(pid: u32) {
    const QUIET: Duration = Duration::from_millis(100);
    for _ in 0..50 {
        let before = processor_time(pid);
        std::thread::sleep(QUIET);
        if processor_time(pid) == before {
            return;
        }
    }
}

/// Resident memory in KiB (`VmRSS:`), or its peak (`VmHWM:`). 0 if the process has ended.
pub(crate) fn memory_kib(pid: u32, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(figure));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
