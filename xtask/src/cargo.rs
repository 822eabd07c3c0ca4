//! Runs the cargo that runs this program, so that one toolchain does everything. Must never interpret a failure of
//! cargo: its exit code is passed on.

use std::{
    env,
    ffi::OsString,
    process::{Command, ExitCode, ExitStatus},
};

/// A cargo command at the root of the repository.
pub(crate) fn command() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(crate::root());
    command
}

/// A cargo that was killed by a signal has no exit code, and counts as a failure.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
