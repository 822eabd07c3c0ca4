//! The process and host of a node: people find the node by them, and a command on the same host sees whether it has ended.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use bates_core::host_name;
use uuid::Uuid;

use crate::error::Failure;
use crate::session::Session;

/// A node that is silent for this long counts as crashed: its ranges are uncertain, and others no longer wait for it.
pub const CRASHED_AFTER: Duration = Duration::from_mins(5);

/// The same, bound into statements as `FLOAT8`.
pub(crate) const CRASHED_AFTER_SECONDS: f64 = CRASHED_AFTER.as_secs_f64();

#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) host: Box<str>,
    /// Boot id, process namespace, process id and start time, which together are unique. `None` if they are unknown.
    identity: Option<Box<str>>,
}

impl Process {
    pub(crate) fn current() -> Self {
        let pid = std::process::id();
        Self { host: format!("{} process {pid}", host_name()).into(), identity: identity(pid) }
    }
}

/// The boot id and the process namespace of this machine.
fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some(format!("{} {namespace}", boot.trim()))
}

fn identity(pid: u32) -> Option<Box<str>> {
    Some(format!("{} {pid} {}", machine()?, start_ticks(pid)?).into())
}

/// The start of a process in ticks since boot; `None` if the process does not exist or is a zombie.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name is in parentheses and may contain spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// Whether the process ran on this machine and has ended; `false` if that is unknown.
pub(crate) fn has_ended(identity: Option<&str>) -> bool {
    let Some((its_machine, pid, started)) = identity.and_then(parse_identity) else { return false };
    machine().is_some_and(|here| here == its_machine) && start_ticks(pid) != Some(started)
}

fn parse_identity(identity: &str) -> Option<(&str, u32, u64)> {
    let (rest, started) = identity.rsplit_once(' ')?;
    let (machine, pid) = rest.rsplit_once(' ')?;
    Some((machine, pid.parse().ok()?, started.parse().ok()?))
}

pub(crate) async fn record_contact(session: &Session, node: Uuid, process: &Process) -> Result<(), Failure> {
    let sql = "INSERT INTO bates.node (id, host, process) VALUES ($1, $2, $3)
               ON CONFLICT (id) DO UPDATE SET seen_at = now()";
    session.query_once(sql, &[&node, &process.host, &process.identity]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_has_ended_only_once_it_is_gone() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let child_identity = identity(child.id()).unwrap();
        assert!(!has_ended(Some(&child_identity)), "the child still waits for input");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(has_ended(Some(&child_identity)));
        assert!(!has_ended(identity(std::process::id()).as_deref()), "the test process still runs");
    }

    #[test]
    fn a_process_of_another_boot_or_unknown_identity_never_counts_as_ended() {
        let here = identity(std::process::id()).unwrap();
        let (_, process) = here.split_once(' ').unwrap();
        assert!(!has_ended(Some(&format!("another-boot {process} 1"))));
        assert!(!has_ended(Some("unreadable")) && !has_ended(None));
    }
}
