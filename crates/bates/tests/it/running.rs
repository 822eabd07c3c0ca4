//! Server processes, and a client that speaks their protocols byte by byte.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use bates_testkit::programs;

const LOOPBACK: &str = "127.0.0.1:0";

/// A server process on free ports.
pub(crate) struct Server {
    child: Child,
    /// The port of the Redis protocol.
    pub(crate) port: u16,
    /// The port of HTTP.
    pub(crate) http: u16,
    /// Held open, because a server ends when its output is closed.
    stdout: BufReader<ChildStdout>,
}

/// The flag with which a server makes its store, if no store was ever in this folder.
pub(crate) fn new_folder(folder: &Path) -> Option<&'static str> {
    let is_empty = fs::read_dir(folder).map_or(true, |mut files| files.next().is_none());
    is_empty.then_some("--new")
}

/// Makes the tables of a store if they are missing: several nodes may start at once.
fn migrate(store: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    let migrated =
        command.arg("migrate").env("BATES_STORE", store).env_remove("BATES_CONFIG").output().unwrap();
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
}

impl Server {
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, LOOPBACK, &[])
    }

    /// Starts a server that listens on `address`, with these environment variables.
    pub(crate) fn start_with(data: &Path, address: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.envs(environment.iter().copied());
        Self::try_start(command, data, address)
            .unwrap_or_else(|stderr| panic!("the server did not start: {stderr}"))
    }

    /// Starts a server whose system calls fail as strace's `inject` says. `None` if it ends before it listens.
    pub(crate) fn start_doomed(data: &Path, inject: &str, environment: &[(&str, &str)]) -> Option<Self> {
        let strace = programs::find("strace").expect("strace; run `cargo xtask test`, which installs it");
        let mut command = Command::new(strace);
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={inject}")]);
        command.arg(env!("CARGO_BIN_EXE_bates"));
        command.envs(environment.iter().copied());
        Self::try_start(command, data, LOOPBACK).ok()
    }

    /// Starts a server with a command that ends with the program; its error output if it ends before it listens.
    pub(crate) fn try_start(mut command: Command, data: &Path, address: &str) -> Result<Self, String> {
        command.args(["serve", "--http", LOOPBACK, "--resp", address, "--data"]).arg(data);
        command.args(new_folder(data));
        Self::run(command)
    }

    /// Starts a node on a store, which is made first if `--new` is among the flags or its folder is missing; its error
    /// output if it refuses to start.
    pub(crate) fn try_node(
        store: &str,
        flags: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.envs(environment.iter().copied()).env("BATES_STORE", store);
        command.args(["serve", "--http", LOOPBACK, "--resp", LOOPBACK]);
        command.args(flags.iter().filter(|flag| **flag != "--new"));
        match store.strip_prefix("sqlite:") {
            Some(folder) => _ = command.args(new_folder(folder.as_ref())),
            None if flags.contains(&"--new") => migrate(store),
            None => {}
        }
        Self::run(command)
    }

    /// Starts a node with a long store timeout, so that a slow machine does not fail it.
    pub(crate) fn node(store: &str) -> Self {
        let long_timeout = [("BATES_STORE_TIMEOUT_MS", "20000")];
        Self::try_node(store, &["--new"], &long_timeout)
            .unwrap_or_else(|stderr| panic!("the server did not start: {stderr}"))
    }

    pub(crate) fn run(mut command: Command) -> Result<Self, String> {
        // Independent of the environment that runs the tests.
        for variable in ["BATES_SECRET", "BATES_PLAINTEXT", "BATES_PLANTED_BUG", "BATES_STORE", "PGPASSWORD"]
        {
            if command.get_envs().all(|(name, _)| name != variable) {
                command.env_remove(variable);
            }
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A process group of its own, so that a kill also reaches the server under strace.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // The server prints its addresses once it listens.
        let lines = stdout.by_ref().lines();
        let mut addresses =
            lines.map(Result::unwrap).filter(|line| line.contains("HTTP") || line.contains("Redis protocol"));
        let mut port = || addresses.next().map(|line| line.rsplit_once(':').unwrap().1.parse().unwrap());
        let (http, port) = (port(), port());
        let mut server = Self { child, http: http.unwrap_or(0), port: port.unwrap_or(0), stdout };
        match port {
            Some(_) => Ok(server),
            None => Err(server.rest_of_stderr()),
        }
    }

    /// The next line of its output that begins with a word.
    pub(crate) fn line(&mut self, word: &str) -> String {
        let mut lines = self.stdout.by_ref().lines().map(Result::unwrap);
        lines.find(|line| line.trim_start().starts_with(word)).expect("the server prints the line")
    }

    pub(crate) fn redis_cli(&self, arguments: &[&str]) -> String {
        let program =
            programs::find("redis-cli").expect("redis-cli; run `cargo xtask test`, which installs it");
        let output =
            Command::new(program).args(["-p", &self.port.to_string()]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Stops the server cleanly, and returns its error output.
    pub(crate) fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(Command::new("sh").args(["-c", "kill -TERM $0", &pid]).status().unwrap().success());
        let output = self.rest_of_stderr();
        assert!(self.child.wait().unwrap().success());
        output
    }

    /// Waits until the error output contains `words`, stops the server cleanly, and returns all of the output.
    pub(crate) fn stop_once_it_said(mut self, words: &str) -> String {
        let mut output = String::new();
        let mut stderr = BufReader::new(self.child.stderr.take().unwrap());
        while !output.contains(words) {
            assert_ne!(
                stderr.read_line(&mut output).unwrap(),
                0,
                "the server ended without {words:?}: {output}"
            );
        }
        self.signal("TERM");
        stderr.read_to_string(&mut output).unwrap();
        assert!(self.child.wait().unwrap().success());
        output
    }

    /// Waits until the error output contains `words` in a complete line; the server goes on.
    pub(crate) fn wait_until_it_said(&mut self, words: &str) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let (mut output, mut byte) = (Vec::new(), [0]);
        loop {
            // One byte at a time, so that the rest can still be read.
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "the server ended without {words:?}");
            output.push(byte[0]);
            if byte == *b"\n" {
                let text = String::from_utf8_lossy(&output);
                if text.contains(words) {
                    return text.into_owned();
                }
            }
        }
    }

    /// Reads the error output until the server ends.
    fn rest_of_stderr(&mut self) -> String {
        let mut output = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut output).unwrap();
        output
    }

    pub(crate) fn kill(self) {
        drop(self);
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name: `STOP`, `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }
}

/// Sends a process a signal by name.
pub(crate) fn signal(pid: u32, name: &str) {
    let pid = pid.to_string();
    assert!(Command::new("sh").args(["-c", "kill -s $1 $0", &pid, name]).status().unwrap().success());
}

/// Sends SIGKILL, also when a test fails, so that no server is left behind.
impl Drop for Server {
    fn drop(&mut self) {
        let pid = self.child.id();
        // Under strace, kills only the server: strace ends after it, when the lock of its folder is free. Killed
        // together, the server could outlive strace by a moment.
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let target = if children.trim().is_empty() { format!("-{pid}") } else { children };
        let _ = Command::new("sh").args(["-c", "kill -s KILL -- $0 2>/dev/null", &target]).status();
        let _ = self.child.wait();
    }
}

/// A connection over which a client sends a request and reads its answer.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Option<Self> {
        Some(Self { stream: BufReader::new(TcpStream::connect(("127.0.0.1", port)).ok()?) })
    }

    pub(crate) fn incr(&mut self, key: &str) -> Option<u64> {
        self.incr_raw(key)?.strip_prefix(':')?.parse().ok()
    }

    /// The line of the answer, or `None` if the connection is gone.
    pub(crate) fn incr_raw(&mut self, key: &str) -> Option<String> {
        self.send(&["INCR", key])
    }

    /// The first line of the answer, or `None` if the connection is gone.
    pub(crate) fn send(&mut self, arguments: &[&str]) -> Option<String> {
        let mut request = format!("*{}\r\n", arguments.len());
        for argument in arguments {
            request.extend([&format!("${}\r\n", argument.len()), *argument, "\r\n"]);
        }
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer).ok()?;
        // A truncated answer does not count: half of a number would be another number.
        answer.strip_suffix("\r\n").map(str::to_owned)
    }

    /// The next line of an answer.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        line.strip_suffix("\r\n").map(str::to_owned)
    }

    /// The body of the answer to a POST without a body, or `None` if the connection is gone.
    pub(crate) fn post(&mut self, path: &str) -> Option<String> {
        self.post_json(path, "")
    }

    /// The body of the answer to a POST, or `None` if the connection is gone.
    pub(crate) fn post_json(&mut self, path: &str, body: &str) -> Option<String> {
        let length = body.len();
        let request =
            format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().ok()?;
                }
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        String::from_utf8(body).ok()
    }
}
