//! A small disk for one test: a file system in memory, mounted where only the test and its servers can see it, and
//! gone with the test.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bates_testkit::programs;
use tempfile::TempDir;

use super::running::Server;

/// A disk, with a process that keeps it mounted.
pub(crate) struct Disk {
    /// Ends with the test, even if that panics, because its input is then closed.
    keeper: Child,
    /// Where the disk is mounted; an empty folder for all other processes.
    folder: TempDir,
    is_root: bool,
    /// Whether a server made its store there.
    has_store: Cell<bool>,
}

impl Disk {
    pub(crate) fn mount(size: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let is_root = Command::new("id").arg("-u").output().unwrap().stdout.trim_ascii() == b"0";
        let mut command = Command::new(find_program("unshare"));
        // Mounting needs root: another user becomes root in a user namespace.
        command.args(if is_root { &[][..] } else { &["--user", "--map-root-user"] });
        let script = r#"mount -t tmpfs -o "size=$1" tmpfs "$0" && echo mounted && exec cat"#;
        let mut keeper = command
            .args(["--mount", "sh", "-c", script])
            .arg(folder.path())
            .arg(size)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n");
        Self { keeper, folder, is_root, has_store: Cell::default() }
    }

    /// Starts a server whose data is on the disk; its error output if it refuses to start.
    pub(crate) fn try_serve(&self) -> Result<Server, String> {
        let mut command = Command::new(find_program("nsenter"));
        command.args(["--target", &self.keeper.id().to_string(), "--mount"]);
        command.args(if self.is_root { &[][..] } else { &["--user", "--preserve-credentials"] });
        command.arg(env!("CARGO_BIN_EXE_bates"));
        command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data"]);
        command.arg(self.folder.path().join("data"));
        command.args((!self.has_store.get()).then_some("--new"));
        let server = Server::run(command);
        self.has_store.set(self.has_store.get() || server.is_ok());
        server
    }

    pub(crate) fn serve(&self) -> Server {
        self.try_serve().unwrap_or_else(|stderr| panic!("the server did not start: {stderr}"))
    }

    /// Fills the disk to the last page.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        // By the MiB first, then page by page.
        for bytes in [1 << 20, 4096] {
            while filler.write_all(&vec![b'x'; bytes]).is_ok() {}
        }
    }

    pub(crate) fn make_room(&self) {
        // Truncated before it is removed, since a process that another test forks just now may hold it open.
        File::create(self.filler()).unwrap();
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.keeper.id()));
        root.join(self.folder.path().strip_prefix("/").unwrap()).join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn find_program(program: &str) -> PathBuf {
    programs::find(program).unwrap_or_else(|| panic!("{program}; run `cargo xtask test`, which installs it"))
}
