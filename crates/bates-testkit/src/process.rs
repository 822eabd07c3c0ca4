//! Starts, awaits and ends one server process. Owns the three things that every private server needs and that are
//! easy to get wrong: its output is always drained, readiness is read from that output rather than guessed from
//! time, and the process ends with the test, however the test ends. Must never know which server it runs.

use std::{
    io::{self, BufRead, BufReader, PipeReader},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use crate::ServerError;

/// Starting takes a second; this bounds the wait for a machine that is busy with other builds.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// A port that is free now can be taken a moment later; losing that race this often is not chance.
const PORT_TRIES_MAX: u32 = 5;

/// The kind of server.
#[derive(Clone, Copy)]
pub(crate) struct Server {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The output that says it accepts connections.
    pub(crate) ready: &'static str,
    /// The signal for a clean stop.
    pub(crate) stop_signal: &'static str,
    /// The signal for an immediate stop that still lets it end its children.
    pub(crate) end_signal: &'static str,
}

/// A server process, its output and its watchdog.
pub(crate) struct ServerProcess {
    server: Server,
    child: Child,
    watchdog: Child,
    /// The output up to the line that says it is ready. Invariant: disconnects only once the server and all
    /// its children are gone, because each of them holds the other end of the pipe.
    lines: Receiver<String>,
}

impl ServerProcess {
    /// Starts the server on a free loopback port; tries other ports if another process takes it.
    pub(crate) fn start_on_free_port(
        server: Server,
        dir: &Path,
        command: impl Fn(u16) -> Command,
    ) -> Result<(Self, u16), ServerError> {
        let mut tries = 1;
        loop {
            let port = free_port().map_err(ServerError::refused(server.name, "find a free port"))?;
            match Self::start(server, dir, command(port)) {
                Err(error) if error.is_port_taken() && tries < PORT_TRIES_MAX => tries += 1,
                outcome => return outcome.map(|process| (process, port)),
            }
        }
    }

    /// Starts the server and returns once it says that it is ready.
    pub(crate) fn start(server: Server, dir: &Path, command: Command) -> Result<Self, ServerError> {
        let (mut child, output) =
            spawn(command).map_err(ServerError::refused(server.name, "start its process"))?;
        let watchdog = match watch(child.id(), dir) {
            Ok(watchdog) => watchdog,
            Err(source) => {
                // No `ServerProcess` owns the child yet.
                let _ = child.kill();
                let _ = child.wait();
                return Err(ServerError::refused(server.name, "start its watchdog")(source));
            }
        };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || drain(output, server.ready, &sender));
        let mut process = Self { server, child, watchdog, lines };
        process.wait_until_ready()?;
        Ok(process)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<(), ServerError> {
        self.call_off_watchdog();
        self.child.kill().map_err(ServerError::refused(self.server.name, "kill its process"))?;
        self.wait_until_gone()
    }

    /// Stops the server cleanly; returns once it and its children are gone.
    pub(crate) fn stop(&mut self) -> Result<(), ServerError> {
        self.end_by(self.server.stop_signal)
    }

    fn end_by(&mut self, signal_name: &str) -> Result<(), ServerError> {
        let refused = |doing| ServerError::refused(self.server.name, doing);
        if self.child.try_wait().map_err(refused("query its process"))?.is_none() {
            signal(signal_name, self.child.id()).map_err(refused("signal its process"))?;
        }
        self.wait_until_gone()?;
        self.call_off_watchdog();
        Ok(())
    }

    fn wait_until_ready(&mut self) -> Result<(), ServerError> {
        let deadline = Instant::now() + WAIT_MAX;
        let mut log = String::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    log.push_str(&line);
                    log.push('\n');
                    if line.contains(self.server.ready) {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ServerError::Ended { server: self.server.name, log });
                }
                Err(RecvTimeoutError::Timeout) => return Err(self.late("ready", log)),
            }
        }
    }

    /// Waits for the children too: PostgreSQL will not start again in a folder that a child still uses.
    fn wait_until_gone(&mut self) -> Result<(), ServerError> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return Err(self.late("gone", String::new())),
            }
        }
        let status = self.child.wait();
        status.map(drop).map_err(ServerError::refused(self.server.name, "wait for its process"))
    }

    fn late(&self, state: &'static str, log: String) -> ServerError {
        ServerError::Late { server: self.server.name, state, waited: WAIT_MAX, log }
    }

    /// Invariant: called before the server is reaped or right after, so that the watchdog can never signal
    /// a later process with the same id.
    fn call_off_watchdog(&mut self) {
        let _ = self.watchdog.kill();
        let _ = self.watchdog.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // SIGKILL comes second, because it orphans the children of a server; in a container without an init process
        // they stay as zombies. A server that survives both is not worth a panic in `drop`.
        if self.end_by(self.server.end_signal).is_err() {
            let _ = self.kill();
        }
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Spawns with both outputs in one pipe, and in its own process group so that Ctrl-C in a terminal reaches the tests
/// first and the server through its watchdog.
fn spawn(mut command: Command) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let child = command.spawn()?;
    // Dropping `command` closes our copies of the writing end; otherwise the pipe would never disconnect.
    Ok((child, reader))
}

/// Starts a shell that kills the server and removes its folder when this process is gone: even SIGKILL
/// closes the pipe it reads from. The kernel's parent-death signal does not help, because it fires when
/// the starting *thread* ends, and each test has a thread.
fn watch(pid: u32, dir: &Path) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", r#"read -r _; kill -KILL "$1"; rm -rf -- "$2""#, "watchdog", &pid.to_string()])
        .arg(dir)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Signals through a shell, whose `kill` is built in: no unsafe code, no program that may be missing.
fn signal(name: &str, pid: u32) -> io::Result<()> {
    let status =
        Command::new("sh").args(["-c", r#"kill -s "$1" "$2""#, "sh", name, &pid.to_string()]).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("kill -s {name} {pid}: {status}"))) }
}

/// Forwards lines until the server is ready, then discards them: a full pipe would block the server.
fn drain(output: PipeReader, ready: &str, lines: &Sender<String>) {
    let mut is_ready = false;
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        if !is_ready {
            let line = String::from_utf8_lossy(&line).into_owned();
            is_ready = line.contains(ready);
            let _ = lines.send(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn the_watchdog_kills_the_server_and_removes_its_folder_when_the_pipe_closes() {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        // An open input keeps `cat` alive.
        let _input = server.stdin.take();
        let mut watchdog = watch(server.id(), dir.path()).unwrap();
        // The kernel does this when the test process is killed.
        drop(watchdog.stdin.take());
        assert_eq!(server.wait().unwrap().signal(), Some(9));
        watchdog.wait().unwrap();
        assert!(!dir.path().exists());
    }
}
