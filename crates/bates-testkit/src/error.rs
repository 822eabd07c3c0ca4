//! Errors of private servers. Every message names the server and what to do next, because the reader is someone whose
//! first test run just failed. Must never hide the output of the server.

use std::{error::Error as _, fmt, io, time::Duration};

use thiserror::Error;

/// Why a private server could not be started, stopped or waited for.
#[derive(Error)]
pub enum ServerError {
    /// A program of the server is not on this machine.
    #[error("the program `{program}` is missing; run `cargo xtask test`, which installs it")]
    ProgramMissing {
        /// The program's name as typed in a shell.
        program: &'static str,
    },
    /// A client library is not under `target/`.
    #[error("the library `{library}` is missing; run `cargo xtask test`, which installs it")]
    LibraryMissing {
        /// The library's name as published.
        library: &'static str,
    },
    /// PostgreSQL refuses to run as root, and its own user does not exist.
    #[error(
        "PostgreSQL refuses to run as root and the user `{user}` is missing; \
         run `cargo xtask test`, which installs it"
    )]
    UserMissing {
        /// The user that the server would run as.
        user: &'static str,
    },
    /// The operating system refused an operation.
    #[error("{server}: cannot {doing}")]
    Refused {
        /// The server that was being handled.
        server: &'static str,
        /// The operation, as a verb and its object.
        doing: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The server, or the program that prepares its files, ended before it was ready.
    #[error("{server} ended before it was ready; its output:\n{log}")]
    Ended {
        /// The server that ended.
        server: &'static str,
        /// Its output.
        log: String,
    },
    /// The server was still not ready, or still not gone, after a generous wait.
    #[error("{server} was not {state} within {} s; its output:\n{log}", waited.as_secs())]
    Late {
        /// The server that was late.
        server: &'static str,
        /// The expected state: `ready` or `gone`.
        state: &'static str,
        /// How long the test waited.
        waited: Duration,
        /// Its output so far.
        log: String,
    },
}

impl ServerError {
    /// Whether another process took the port after it was chosen.
    pub(crate) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Ended { log, .. } if log.contains("Address already in use"))
    }

    /// Turns an I/O error into one that names the operation: `.map_err(ServerError::refused(…))`.
    pub(crate) fn refused(server: &'static str, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Refused { server, doing, source }
    }
}

/// A failed `unwrap` in a test prints this: the sentence, not the variant.
impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source() {
            Some(source) => write!(f, "{self}: {source}"),
            None => write!(f, "{self}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_missing_program_says_how_to_install_it() {
        let message = format!("{:?}", ServerError::ProgramMissing { program: "redis-server" });
        assert!(message.contains("`redis-server`"));
        assert!(message.contains("run `cargo xtask test`, which installs it"));
    }

    #[test]
    fn only_the_log_of_a_taken_port_counts_as_port_taken() {
        let ended = |log: &str| ServerError::Ended { server: "Redis", log: log.to_owned() };
        assert!(ended("bind: Address already in use").is_port_taken());
        assert!(!ended("No space left on device").is_port_taken());
    }
}
