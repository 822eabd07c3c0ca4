//! An example that serves, as a process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::built;
use crate::http;

/// A process that says where it listens.
pub(super) struct Example {
    child: Child,
    said: BufReader<ChildStdout>,
    pub(super) address: String,
}

impl Example {
    /// Starts it on a free port, with these arguments behind that.
    pub(super) fn start<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(built(name));
        let mut child = command.arg("127.0.0.1:0").args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let (mut said, mut line) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        said.read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit(' ').next().unwrap().to_owned();
        Self { child, said, address }
    }

    /// Asks, and answers with the status, the head and the text.
    pub(super) fn ask(&self, request: &str, heads: &str, body: &str) -> (u16, String, String) {
        ask(&self.address, request, heads, body)
    }

    /// Stops it as a person at a terminal does, and answers what it said then.
    pub(super) fn interrupt(mut self) -> String {
        let kill = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success() && self.child.wait().unwrap().success());
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        rest
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks a process on this machine.
pub(super) fn ask(address: &str, request: &str, heads: &str, body: &str) -> (u16, String, String) {
    http::send(address.rsplit(':').next().unwrap().parse().unwrap(), request, heads, body)
}
