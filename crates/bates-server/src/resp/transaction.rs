//! The commands between `MULTI` and `EXEC`. Must never execute one, or hold more than its limits.

use std::io::Write as _;

use super::Command;

/// Commands that a transaction can hold. Redis has no limit.
const COUNT_MAX: usize = 65_536;
/// Bytes of these commands: four of the longest commands.
const BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Transaction {
    queue: Queue,
    /// A command was refused, so none will be executed.
    is_refused: bool,
}

/// Commands to execute one after the other.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// As a client would send them.
    pub(super) bytes: Vec<u8>,
    pub(super) count: usize,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a transaction can hold at most {COUNT_MAX} commands of {BYTES_MAX} bytes together: send several")]
pub(super) struct FullError;

impl Transaction {
    /// Bytes of memory that the commands hold.
    pub(super) fn held_bytes(&self) -> usize {
        self.queue.bytes.capacity()
    }

    /// A command that does not fit is refused.
    pub(super) fn push(&mut self, command: Command<'_>) -> Result<(), FullError> {
        if self.is_refused {
            return Ok(());
        }
        if self.queue.count >= COUNT_MAX || self.queue.bytes.len() + encoded_bytes_max(command) > BYTES_MAX {
            self.refuse();
            return Err(FullError);
        }
        self.queue.push(command);
        Ok(())
    }

    /// A command was refused. The others are dropped, because none will be executed.
    pub(super) fn refuse(&mut self) {
        *self = Self { queue: Queue::default(), is_refused: true };
    }

    /// The commands, unless one was refused.
    pub(super) fn into_queue(self) -> Option<Queue> {
        (!self.is_refused).then_some(self.queue)
    }
}

impl Queue {
    fn push(&mut self, command: Command<'_>) {
        // Writing into memory does not fail.
        let _ = write!(self.bytes, "*{}\r\n", command.arg_count());
        for arg in command.args() {
            let _ = write!(self.bytes, "${}\r\n", arg.len());
            self.bytes.extend_from_slice(arg);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.count += 1;
    }
}

fn encoded_bytes_max(command: Command<'_>) -> usize {
    /// A sign, a length and its line end; and the line end of the argument.
    const FRAME: usize = 16;
    command.args().map(|arg| FRAME + arg.len()).sum::<usize>() + FRAME
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Progress, Reader};
    use super::*;

    fn push(transaction: &mut Transaction, line: &[u8]) -> Result<(), FullError> {
        let mut reader = Reader::new(Limits::AUTHENTICATED);
        let Ok(Progress::Command(command)) = reader.read(line) else { panic!("a whole command") };
        transaction.push(command)
    }

    #[test]
    fn commands_are_kept_in_order_as_a_client_would_send_them() {
        let mut transaction = Transaction::default();
        push(&mut transaction, b"INCR \"a b\"\r\n").unwrap();
        push(&mut transaction, b"*1\r\n$4\r\nPING\r\n").unwrap();
        let queue = transaction.into_queue().unwrap();
        assert_eq!(queue.bytes, b"*2\r\n$4\r\nINCR\r\n$3\r\na b\r\n*1\r\n$4\r\nPING\r\n");
        assert_eq!(queue.count, 2);
    }

    #[test]
    fn a_refused_command_drops_the_others() {
        let mut transaction = Transaction::default();
        push(&mut transaction, b"INCR a\r\n").unwrap();
        transaction.refuse();
        push(&mut transaction, b"INCR a\r\n").unwrap();
        assert_eq!(transaction.held_bytes(), 0);
        assert!(transaction.into_queue().is_none());
    }

    #[test]
    fn commands_beyond_the_limits_are_refused() {
        let mut many = Transaction::default();
        for _ in 0..COUNT_MAX {
            push(&mut many, b"PING\r\n").unwrap();
        }
        assert_eq!(push(&mut many, b"PING\r\n"), Err(FullError));
        assert!(many.into_queue().is_none());

        let long = format!("*2\r\n$4\r\nECHO\r\n$500000\r\n{}\r\n", "x".repeat(500_000));
        let mut large = Transaction::default();
        for _ in 0..8 {
            push(&mut large, long.as_bytes()).unwrap();
        }
        assert_eq!(push(&mut large, long.as_bytes()), Err(FullError));
        assert_eq!(large.held_bytes(), 0);
    }
}
