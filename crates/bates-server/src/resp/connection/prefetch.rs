//! Reads ahead in a pipeline while a command waits for the store. Must never create a scope for a command that is refused or
//! does not run.

use bates_core::Store;

use super::super::command::{self, Ahead};
use super::super::{Progress, Reader};
use super::Connection;

/// Max commands of a pipeline to look ahead while one waits for the store.
const PREFETCH_MAX: usize = 1_024;

impl<S: Store> Connection<S> {
    /// Starts fetching numbers for the command at `at`, which waits, and for those after it, so that all share a commit.
    /// Returns where it stopped: at the latest where the caller's rate or quota ends, because a refused command must not
    /// create a scope.
    pub(super) fn prefetch(&self, mut at: usize) -> usize {
        let mut reader = Reader::new(self.session.limits());
        let mut scopes = Vec::new();
        let mut allowed = self.session.caller().allowance_left(&self.machine);
        for _ in 0..PREFETCH_MAX {
            match reader.read(&self.input[at..]) {
                Ok(Progress::Command(command)) => {
                    let consumed = command.consumed();
                    match command::look_ahead(command, &self.session, &self.machine) {
                        Ahead::Numbers { count, .. } if count > allowed => break,
                        Ahead::Numbers { entry, scope, count } => {
                            allowed -= count;
                            scopes.push((entry, scope));
                        }
                        Ahead::Barrier => break,
                        Ahead::Other => {}
                    }
                    at += consumed;
                }
                Ok(Progress::Empty { consumed }) => at += consumed,
                // Handled when it is executed.
                Ok(Progress::Incomplete { .. }) | Err(_) => {
                    at = self.input.len();
                    break;
                }
            }
        }
        self.machine.prefetch_scopes(&scopes);
        at
    }
}
