//! The person who runs a command on a store, as the operations log names it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use bates_core::host_name;

/// `alice on db1`: the user that the process runs as, which no variable of the environment can change.
pub(crate) fn command_user() -> String {
    let uid = fs::metadata("/proc/self").map(|process| process.uid());
    let name = uid.map_or_else(|_| "unknown user".to_owned(), user_name);
    format!("{name} on {}", host_name())
}

fn user_name(uid: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_user = |line: &&str| line.split(':').nth(2).and_then(|field| field.parse().ok()) == Some(uid);
    let name = users.lines().find(is_user).and_then(|line| line.split(':').next());
    name.map_or_else(|| format!("user {uid}"), str::to_owned)
}
