//! A running server, and a client that speaks its protocol byte by byte.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use bates_testkit::programs;

const LOOPBACK: &str = "127.0.0.1:0";

/// A server process on a free port.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// The port of HTTP.
    pub(crate) http: u16,
    /// Held open: a server that is told that nobody listens to it would end.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, LOOPBACK, &[])
    }

    /// A server that listens on `address` and has these variables in its environment.
    pub(crate) fn start_with(data: &Path, address: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.envs(environment.iter().copied());
        Self::try_start(command, data, address).unwrap_or_else(|said| panic!("no server: {said}"))
    }

    /// A server whose system calls go wrong, as strace's `inject` says. `None` if they do before it listens.
    pub(crate) fn start_doomed(data: &Path, inject: &str, environment: &[(&str, &str)]) -> Option<Self> {
        let strace = programs::find("strace").expect("strace; run `cargo xtask test`, which installs it");
        let mut command = Command::new(strace);
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={inject}")]);
        command.arg(env!("CARGO_BIN_EXE_bates"));
        command.envs(environment.iter().copied());
        Self::try_start(command, data, LOOPBACK).ok()
    }

    /// What runs the program, which is the last word of the command; its last words if it ends before it listens.
    pub(crate) fn try_start(mut command: Command, data: &Path, address: &str) -> Result<Self, String> {
        command.args(["serve", "--http", LOOPBACK, "--resp", address, "--data"]).arg(data);
        Self::run(command)
    }

    /// A node on a store that is shared; its last words if it refuses to start.
    pub(crate) fn try_node(
        store: &str,
        flags: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.envs(environment.iter().copied()).env("BATES_STORE", store);
        command.args(["serve", "--http", LOOPBACK, "--resp", LOOPBACK]).args(flags);
        Self::run(command)
    }

    /// A node of whose speed nothing is claimed.
    pub(crate) fn node(store: &str) -> Self {
        let patient = [("BATES_STORE_TIMEOUT_MS", "20000")];
        Self::try_node(store, &["--new"], &patient).unwrap_or_else(|said| panic!("no server: {said}"))
    }

    pub(crate) fn run(mut command: Command) -> Result<Self, String> {
        // Whatever the environment of who runs this is like.
        for variable in ["BATES_SECRET", "BATES_PLANTED_BUG", "BATES_STORE", "PGPASSWORD"] {
            if command.get_envs().all(|(name, _)| name != variable) {
                command.env_remove(variable);
            }
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: whoever kills strace must kill what it traces too.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // It says where it listens once it does.
        let lines = stdout.by_ref().lines();
        let mut told =
            lines.map(Result::unwrap).filter(|line| line.contains("HTTP") || line.contains("Redis protocol"));
        let mut port = || told.next().map(|line| line.rsplit_once(':').unwrap().1.parse().unwrap());
        let (http, port) = (port(), port());
        let mut server = Self { child, http: http.unwrap_or(0), port: port.unwrap_or(0), _stdout: stdout };
        match port {
            Some(_) => Ok(server),
            None => Err(server.last_words()),
        }
    }

    pub(crate) fn redis_cli(&self, arguments: &[&str]) -> String {
        let program =
            programs::find("redis-cli").expect("redis-cli; run `cargo xtask test`, which installs it");
        let output =
            Command::new(program).args(["-p", &self.port.to_string()]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Ends it cleanly, and answers with its last words.
    pub(crate) fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(Command::new("sh").args(["-c", "kill -TERM $0", &pid]).status().unwrap().success());
        let said = self.last_words();
        assert!(self.child.wait().unwrap().success());
        said
    }

    /// Ends it cleanly once it has said something that contains `words`, and answers with all that it said.
    pub(crate) fn stop_once_it_said(mut self, words: &str) -> String {
        let mut said = String::new();
        let mut stderr = BufReader::new(self.child.stderr.take().unwrap());
        while !said.contains(words) {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "it ended without saying {words:?}: {said}");
        }
        self.signal("TERM");
        stderr.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        said
    }

    /// What it says on its way out; waits for that.
    fn last_words(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
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

/// SIGKILL, also when a test fails: no server is left behind.
impl Drop for Server {
    fn drop(&mut self) {
        let pid = self.child.id();
        // Under strace the server is its child. strace ends by itself once that is gone with all it held, the lock
        // of its folder too; killed together, the server could outlive strace by a moment.
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let whom = if children.trim().is_empty() { format!("-{pid}") } else { children };
        let _ = Command::new("sh").args(["-c", "kill -s KILL -- $0 2>/dev/null", &whom]).status();
        let _ = self.child.wait();
    }
}

/// A connection that speaks the protocol as a client does: a request, then its answer.
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
    pub(crate) fn send(&mut self, words: &[&str]) -> Option<String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.extend([&format!("${}\r\n", word.len()), *word, "\r\n"]);
        }
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer).ok()?;
        // An answer that was cut off is none: half of a number would be another number.
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
