//! The process and the machine of a node: people find it by them, and a command on the same machine knows if it has ended.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use uuid::Uuid;

use crate::error::Failed;
use crate::session::Session;

/// A node that is silent for this long counts as crashed: what it holds is uncertain, and others no longer wait for it.
pub const CRASHED_AFTER: Duration = Duration::from_mins(5);

/// The same, bound into statements as `FLOAT8`.
pub(crate) const CRASHED_AFTER_SECONDS: f64 = CRASHED_AFTER.as_secs_f64();

#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) host: Box<str>,
    /// Boot, process namespace, process id and start: no other process has all four. `None` where it cannot be told.
    identity: Option<Box<str>>,
}

impl Process {
    pub(crate) fn current() -> Self {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "unknown".to_owned());
        let pid = std::process::id();
        Self { host: format!("{} process {pid}", name.trim()).into(), identity: identity(pid) }
    }
}

/// The id of this boot and of the namespace that process ids are of.
fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some(format!("{} {namespace}", boot.trim()))
}

fn identity(pid: u32) -> Option<Box<str>> {
    Some(format!("{} {pid} {}", machine()?, began(pid)?).into())
}

/// When a process began, in ticks since the boot; `None` if there is no such process, or it is a zombie.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses and may hold spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// Whether the process ran on this machine and has ended; `false` where that is unknown.
pub(crate) fn has_ended(identity: Option<&str>) -> bool {
    let Some((pid, of_machine)) = identity.and_then(|identity| {
        let (rest, began) = identity.rsplit_once(' ')?;
        let (of_machine, pid) = rest.rsplit_once(' ')?;
        Some(((pid.parse::<u32>().ok()?, began.parse::<u64>().ok()?), of_machine))
    }) else {
        return false;
    };
    machine().is_some_and(|here| here == of_machine) && began(pid.0) != Some(pid.1)
}

pub(crate) async fn be_seen(session: &Session, node: Uuid, process: &Process) -> Result<(), Failed> {
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
