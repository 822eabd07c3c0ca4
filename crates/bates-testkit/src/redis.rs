//! A private Redis without files, on a loopback port. Must never use the port of a Redis that the machine runs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    ServerError,
    process::{Server, ServerProcess},
    programs,
};

const REDIS: Server =
    Server { name: "Redis", ready: "Ready to accept connections", stop_signal: "TERM", end_signal: "KILL" };

/// A private Redis, stopped when dropped.
pub struct PrivateRedis {
    // Invariant: before `dir`, so that the server is gone when its folder is removed.
    process: ServerProcess,
    dir: TempDir,
    port: u16,
    settings: &'static [&'static str],
}

impl PrivateRedis {
    /// Starts a server on a free loopback port, and returns once it accepts connections.
    pub fn start() -> Result<Self, ServerError> {
        Self::start_with(&[])
    }

    /// The same with more settings, such as `["--appendonly", "yes"]`.
    pub fn start_with(settings: &'static [&'static str]) -> Result<Self, ServerError> {
        let dir = TempDir::with_prefix("bates-redis-")
            .map_err(ServerError::refused(REDIS.name, "make a temporary folder"))?;
        let program = program()?;
        let (process, port) = ServerProcess::start_on_free_port(REDIS, dir.path(), |port| {
            server_command(&program, dir.path(), port, settings)
        })?;
        Ok(Self { process, dir, port, settings })
    }

    /// The URL for clients: `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The loopback port; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Records that a command changed the port of the server.
    pub fn set_port(&mut self, port: u16) {
        self.port = port;
    }

    /// The id of the server's process; it changes with a restart.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        self.process.kill()
    }

    /// Stops the server cleanly.
    pub fn stop(&mut self) -> Result<(), ServerError> {
        self.process.stop()
    }

    /// Starts the server again on the same port, empty; stops it first if it runs.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.process.stop()?;
        let command = server_command(&program()?, self.dir.path(), self.port, self.settings);
        self.process = ServerProcess::start(REDIS, self.dir.path(), command)?;
        Ok(())
    }
}

fn program() -> Result<PathBuf, ServerError> {
    programs::find("redis-server").ok_or(ServerError::ProgramMissing { program: "redis-server" })
}

fn server_command(program: &Path, dir: &Path, port: u16, settings: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--daemonize", "no"])
        .args(["--save", "", "--appendonly", "no"])
        .arg("--dir")
        .arg(dir)
        .args(settings)
        .current_dir(dir);
    command
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, net::TcpListener};

    use super::*;

    #[test]
    fn a_port_lost_to_another_process_is_replaced_by_a_free_one() {
        let rival = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let taken = rival.local_addr().unwrap().port();
        let (dir, program, tries) = (TempDir::new().unwrap(), program().unwrap(), Cell::new(0));
        let (_process, port) = ServerProcess::start_on_free_port(REDIS, dir.path(), |port| {
            tries.set(tries.get() + 1);
            server_command(&program, dir.path(), if tries.get() == 1 { taken } else { port }, &[])
        })
        .unwrap();
        assert_eq!(tries.get(), 2);
        assert_ne!(port, taken);
    }
}
