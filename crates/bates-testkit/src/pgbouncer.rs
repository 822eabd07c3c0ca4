//! A private PgBouncer in transaction mode in front of a private PostgreSQL. Many installations use one, and it
//! keeps no session state between two transactions.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::postgres::{Owner, PrivatePostgres, USER};
use crate::process::{Server, ServerProcess};
use crate::{ServerError, programs};

const PGBOUNCER: Server =
    Server { name: "PgBouncer", ready: "process up", stop_signal: "INT", end_signal: "KILL" };

/// A private PgBouncer, stopped when dropped.
pub struct PrivatePgBouncer {
    // Invariant: before `_dir`, so that the server is gone when its folder is removed.
    process: ServerProcess,
    _dir: TempDir,
    port: u16,
}

impl PrivatePgBouncer {
    /// Starts one in front of a PostgreSQL, with so few connections that clients must share them.
    pub fn start(postgres: &PrivatePostgres) -> Result<Self, ServerError> {
        let program = program()?;
        let dir = TempDir::with_prefix("bates-pgbouncer-")
            .map_err(ServerError::refused(PGBOUNCER.name, "make a temporary folder"))?;
        // Like PostgreSQL, it refuses to run as root.
        let owner = Owner::instead_of_root()?;
        let (process, port) = ServerProcess::start_on_free_port(PGBOUNCER, dir.path(), |port| {
            // Without its file, the server does not start and says why.
            let _ = configure(dir.path(), postgres.port(), port, owner);
            command(&program, dir.path(), owner)
        })?;
        Ok(Self { process, _dir: dir, port })
    }

    /// The URL of the database, through this PgBouncer.
    pub fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres", self.port)
    }

    /// The loopback port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

fn program() -> Result<PathBuf, ServerError> {
    programs::find("pgbouncer").ok_or(ServerError::ProgramMissing { program: "pgbouncer" })
}

fn configure(dir: &Path, postgres: u16, port: u16, owner: Option<Owner>) -> std::io::Result<()> {
    let file = dir.join("pgbouncer.ini");
    std::fs::write(
        &file,
        format!(
            "[databases]\n* = host=127.0.0.1 port={postgres} user={USER}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nserver_idle_timeout = 5\nmax_client_conn = 1000\n\
             server_reset_query =\nignore_startup_parameters = extra_float_digits\n"
        ),
    )?;
    if let Some(Owner { uid, gid }) = owner {
        chown(dir, Some(uid), Some(gid))?;
        chown(&file, Some(uid), Some(gid))?;
    }
    Ok(())
}

fn command(program: &Path, dir: &Path, owner: Option<Owner>) -> Command {
    let mut command = Command::new(program);
    command.arg(dir.join("pgbouncer.ini")).current_dir(dir);
    if let Some(Owner { uid, gid }) = owner {
        command.uid(uid).gid(gid);
    }
    command
}
