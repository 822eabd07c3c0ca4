//! A private PostgreSQL: its own cluster in a temporary folder, on a loopback port. Must never weaken durability
//! (`fsync` stays on), because tests kill this server and check what survived.

use std::{
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    ServerError,
    process::{Server, ServerProcess},
    programs,
};

/// SIGINT is PostgreSQL's fast shutdown, which ends open sessions instead of waiting for them; SIGQUIT is its
/// immediate shutdown, which writes no checkpoint.
const POSTGRES: Server = Server {
    name: "PostgreSQL",
    ready: "database system is ready to accept connections",
    stop_signal: "INT",
    end_signal: "QUIT",
};

/// A standby reports its readiness in other words.
const STANDBY: Server =
    Server { ready: "database system is ready to accept read-only connections", ..POSTGRES };

/// The user that the packages create to run the server, and the superuser inside the cluster.
pub(crate) const USER: &str = "postgres";

/// A private PostgreSQL, stopped and removed when dropped.
pub struct PrivatePostgres {
    // Invariant: before `dir`, so that the server is gone when its folder is removed.
    process: ServerProcess,
    dir: TempDir,
    port: u16,
    installation: Installation,
}

impl PrivatePostgres {
    /// Makes a cluster and starts it on a free loopback port; returns once it accepts connections.
    pub fn start() -> Result<Self, ServerError> {
        let installation = Installation::find()?;
        let dir = TempDir::with_prefix("bates-pg-")
            .map_err(ServerError::refused(POSTGRES.name, "make a temporary folder"))?;
        installation.make_cluster(dir.path())?;
        let (process, port) = ServerProcess::start_on_free_port(POSTGRES, dir.path(), |port| {
            installation.server_command(dir.path(), port)
        })?;
        Ok(Self { process, dir, port, installation })
    }

    /// Starts a streaming standby of this server.
    pub fn start_standby(&self) -> Result<Self, ServerError> {
        let installation = Installation::find()?;
        let dir = TempDir::with_prefix("bates-pg-")
            .map_err(ServerError::refused(POSTGRES.name, "make a temporary folder"))?;
        installation.copy_cluster(dir.path(), self.port)?;
        let (process, port) = ServerProcess::start_on_free_port(STANDBY, dir.path(), |port| {
            installation.server_command(dir.path(), port)
        })?;
        Ok(Self { process, dir, port, installation })
    }

    /// Restarts on the port of a stopped server, as a failover does, so that its clients reach this one. A standby
    /// must have been promoted before.
    pub fn take_over(&mut self, gone: &Self) -> Result<(), ServerError> {
        self.process.stop()?;
        self.port = gone.port;
        let command = self.installation.server_command(self.dir.path(), self.port);
        self.process = ServerProcess::start(POSTGRES, self.dir.path(), command)?;
        Ok(())
    }

    /// The URL for clients, as the superuser: `postgres://postgres@127.0.0.1:PORT/postgres`.
    pub fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres", self.port)
    }

    /// The loopback port; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of the server's main process; it changes with a restart.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills the server with SIGKILL: only committed data survives.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        self.process.kill()
    }

    /// Stops the server cleanly and ends its open sessions.
    pub fn stop(&mut self) -> Result<(), ServerError> {
        self.process.stop()
    }

    /// Makes a cold backup: stops the server, copies its data, and starts it again.
    pub fn copy(&mut self) -> Result<TempDir, ServerError> {
        let copy = TempDir::with_prefix("bates-pg-")
            .map_err(ServerError::refused(POSTGRES.name, "make a temporary folder"))?;
        self.process.stop()?;
        copy_folder(&self.dir.path().join("data"), copy.path())?;
        self.restart()?;
        Ok(copy)
    }

    /// Replaces all data with a copy, and starts the server on it.
    pub fn put_back(&mut self, copy: &TempDir) -> Result<(), ServerError> {
        self.process.stop()?;
        let data = self.dir.path().join("data");
        let refused = ServerError::refused(POSTGRES.name, "remove its data");
        std::fs::remove_dir_all(&data).map_err(refused)?;
        copy_folder(&copy.path().join("data"), self.dir.path())?;
        self.restart()
    }

    /// Starts the server again with the same data on the same port; stops it first if it runs.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.process.stop()?;
        let command = self.installation.server_command(self.dir.path(), self.port);
        self.process = ServerProcess::start(POSTGRES, self.dir.path(), command)?;
        Ok(())
    }
}

/// Copies a folder with owners and permissions into another.
fn copy_folder(from: &Path, into: &Path) -> Result<(), ServerError> {
    let output = Command::new("cp").arg("-a").arg(from).arg(into).output();
    let output = output.map_err(ServerError::refused(POSTGRES.name, "copy its data"))?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(ServerError::Ended { server: "a copy of PostgreSQL's data", log })
}

/// The programs, and the user that runs them.
struct Installation {
    initdb: PathBuf,
    postgres: PathBuf,
    owner: Option<Owner>,
}

/// The user that replaces root.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Installation {
    fn find() -> Result<Self, ServerError> {
        let found = |program| programs::find(program).ok_or(ServerError::ProgramMissing { program });
        Ok(Self { initdb: found("initdb")?, postgres: found("postgres")?, owner: Owner::instead_of_root()? })
    }

    fn make_cluster(&self, dir: &Path) -> Result<(), ServerError> {
        let refused = |doing| ServerError::refused(POSTGRES.name, doing);
        if let Some(Owner { uid, gid }) = self.owner {
            chown(dir, Some(uid), Some(gid)).map_err(refused("hand over its folder"))?;
        }
        // The test does not outlive a crash of the machine, so initdb need not sync.
        let output = self
            .command(&self.initdb, dir)
            .args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=trust", "--username", USER])
            .output()
            .map_err(refused("run initdb"))?;
        if output.status.success() {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(ServerError::Ended { server: "PostgreSQL's initdb", log })
    }

    /// Copies a running server, for a standby of it.
    fn copy_cluster(&self, dir: &Path, port: u16) -> Result<(), ServerError> {
        let refused = |doing| ServerError::refused(POSTGRES.name, doing);
        if let Some(Owner { uid, gid }) = self.owner {
            chown(dir, Some(uid), Some(gid)).map_err(refused("hand over its folder"))?;
        }
        let program = self.initdb.with_file_name("pg_basebackup");
        let output = self
            .command(&program, dir)
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--username", USER])
            .args(["--wal-method", "stream", "--checkpoint", "fast", "--write-recovery-conf", "--no-sync"])
            .output()
            .map_err(refused("run pg_basebackup"))?;
        if output.status.success() {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(ServerError::Ended { server: "PostgreSQL's pg_basebackup", log })
    }

    fn server_command(&self, dir: &Path, port: u16) -> Command {
        let mut command = self.command(&self.postgres, dir);
        command
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            // No socket in the file system: its path has a limit that a temporary folder may exceed.
            .args(["-c", "unix_socket_directories="])
            // PgBouncer keeps four connections of each claim's database for five seconds.
            .args(["-c", "max_connections=400"]);
        command
    }

    /// The C locale keeps the readiness message in English.
    fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("-D").arg(dir.join("data")).current_dir(dir).env("LC_ALL", "C");
        if let Some(Owner { uid, gid }) = self.owner {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Owner {
    /// `None` unless the tests run as root, which PostgreSQL refuses.
    pub(crate) fn instead_of_root() -> Result<Option<Self>, ServerError> {
        if id(&["-u"])? != Some(0) {
            return Ok(None);
        }
        match (id(&["-u", USER])?, id(&["-g", USER])?) {
            (Some(uid), Some(gid)) => Ok(Some(Self { uid, gid })),
            _ => Err(ServerError::UserMissing { user: USER }),
        }
    }
}

/// `None` if the user does not exist.
fn id(arguments: &[&str]) -> Result<Option<u32>, ServerError> {
    let output = Command::new("id").args(arguments).output();
    let output = output.map_err(ServerError::refused(POSTGRES.name, "ask for user ids"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_lost_to_another_process_is_recognized() {
        let mut server = PrivatePostgres::start().unwrap();
        let rival = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        server.port = rival.local_addr().unwrap().port();
        assert!(server.restart().unwrap_err().is_port_taken());
    }
}
