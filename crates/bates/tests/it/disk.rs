//! A small disk of a test's own: a file system in memory, mounted where nobody but the test and the servers that
//! it starts can see it, and gone with the test.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bates_testkit::programs;
use tempfile::TempDir;

use super::running::Server;

/// A disk, with a process that keeps it mounted.
pub(crate) struct Disk {
    /// Ends when the test does, however that ends: its input is closed then.
    keeper: Child,
    /// Where it is mounted; an empty folder to everybody else.
    folder: TempDir,
    is_root: bool,
}

impl Disk {
    pub(crate) fn mount(size: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let is_root = Command::new("id").arg("-u").output().unwrap().stdout.trim_ascii() == b"0";
        let mut command = Command::new(found("unshare"));
        // Whoever is not root is root of a world of its own.
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
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "mounted\n");
        Self { keeper, folder, is_root }
    }

    /// Starts a server whose data is on the disk; its last words if it refuses to start.
    pub(crate) fn try_serve(&self) -> Result<Server, String> {
        let mut command = Command::new(found("nsenter"));
        command.args(["--target", &self.keeper.id().to_string(), "--mount"]);
        command.args(if self.is_root { &[][..] } else { &["--user", "--preserve-credentials"] });
        command.arg(env!("CARGO_BIN_EXE_bates"));
        Server::try_start(command, &self.folder.path().join("data"), "127.0.0.1:0")
    }

    pub(crate) fn serve(&self) -> Server {
        self.try_serve().unwrap_or_else(|said| panic!("no server: {said}"))
    }

    /// Leaves no room at all.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        // Page by page at last, so that none is left.
        for bytes in [1 << 20, 4096] {
            while filler.write_all(&vec![b'x'; bytes]).is_ok() {}
        }
    }

    pub(crate) fn make_room(&self) {
        // Emptied, not only removed: a process that another test begins just now may still hold it open.
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

fn found(program: &str) -> PathBuf {
    programs::find(program).unwrap_or_else(|| panic!("{program}; run `cargo xtask test`, which installs it"))
}
