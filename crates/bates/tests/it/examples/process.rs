//! An example that serves HTTP, run as a process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::example_binary;
use crate::http;

/// A process that prints the address on which it listens.
pub(super) struct Example {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(super) address: String,
}

impl Example {
    /// Starts it on a free port; these arguments follow the address.
    pub(super) fn start<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(example_binary(name));
        let mut child = command.arg("127.0.0.1:0").args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdout, mut line) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit(' ').next().unwrap().to_owned();
        Self { child, stdout, address }
    }

    /// Sends a request, and returns the status, the headers and the text.
    pub(super) fn ask(&self, request: &str, headers: &str, body: &str) -> (u16, String, String) {
        ask(&self.address, request, headers, body)
    }

    /// Interrupts it as Ctrl-C does, and returns the rest of its output.
    pub(super) fn interrupt(mut self) -> String {
        let kill = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success() && self.child.wait().unwrap().success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request to a process on this machine.
pub(super) fn ask(address: &str, request: &str, headers: &str, body: &str) -> (u16, String, String) {
    http::send(address.rsplit(':').next().unwrap().parse().unwrap(), request, headers, body)
}
