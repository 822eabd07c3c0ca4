//! Runs the cargo that runs us, so that one toolchain does everything. Must never decide what a failure of
//! cargo means: its exit code is handed on.

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

/// The exit code to end with; a cargo that was killed by a signal has none.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
