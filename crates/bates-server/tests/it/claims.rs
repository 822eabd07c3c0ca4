//! Checks that must hold for any bytes from a client, however they are split. Property tests and fuzz targets
//! share them.

use bates_server::resp::{Limits, Progress, ProtocolError, Reader};

/// The arguments of a command.
pub(crate) type Args = Vec<Vec<u8>>;

/// The commands read from a connection, then the number of bytes left over or the error that closes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) commands: Vec<Args>,
    pub(crate) end: Result<usize, ProtocolError>,
}

/// Limits that short inputs can reach.
pub(crate) const SMALL: Limits = Limits {
    arg_count_max: 4,
    arg_bytes_max: 12,
    inline_bytes_max: 24,
    command_bytes_max: 48,
    is_authenticated: true,
};

/// Reads as a connection does: appends each chunk, takes complete commands, keeps the rest.
pub(crate) fn read_chunks<'b>(limits: Limits, chunks: impl IntoIterator<Item = &'b [u8]>) -> Outcome {
    let (mut reader, mut buffer, mut commands) = (Reader::new(limits), Vec::new(), Vec::new());
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            let consumed = match reader.read(&buffer) {
                Err(error) => return Outcome { commands, end: Err(error) },
                Ok(Progress::Incomplete { missing }) => {
                    assert!(missing > 0, "the reader waits although no byte is missing");
                    assert!(
                        buffer.len() + missing <= bytes_max(&limits),
                        "the reader waits for more than the limit"
                    );
                    break;
                }
                Ok(Progress::Empty { consumed }) => consumed,
                Ok(Progress::Command(command)) => {
                    assert!(command.arg_count() > 0, "a command without a name");
                    assert!(command.arg_count() <= limits.arg_count_max, "too many arguments");
                    assert!(
                        command.args().all(|arg| arg.len() <= limits.arg_bytes_max),
                        "too long an argument"
                    );
                    assert_eq!(command.arg(0), Some(command.name()));
                    commands.push(command.args().map(<[u8]>::to_vec).collect());
                    command.consumed()
                }
            };
            assert!(
                consumed > 0 && consumed <= buffer.len(),
                "the reader consumed {consumed} of {}",
                buffer.len()
            );
            buffer.drain(..consumed);
        }
    }
    Outcome { commands, end: Ok(buffer.len()) }
}

/// The most bytes that a reader may ask a connection to buffer.
fn bytes_max(limits: &Limits) -> usize {
    // The longest length line may still be incomplete.
    let length = 1 + 20;
    limits.command_bytes_max.max(limits.inline_bytes_max) + length
}

/// Commands as a client sends them.
pub(crate) fn encode(commands: &[Args]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for args in commands {
        bytes.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
        for arg in args {
            bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            bytes.extend_from_slice(arg);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}

/// Bytes read the same however they are split, and the commands read from them can be encoded and read again.
pub(crate) fn check_bytes(bytes: &[u8], split: u8) {
    for limits in [SMALL, Limits::UNAUTHENTICATED, Limits::AUTHENTICATED] {
        let whole = read_chunks(limits, [bytes]);
        let size = usize::from(split).max(1);
        assert_eq!(read_chunks(limits, bytes.chunks(size)), whole, "split into chunks of {size}");
        let (front, back) = bytes.split_at(usize::from(split).min(bytes.len()));
        assert_eq!(read_chunks(limits, [front, back]), whole, "split at {split}");
        if limits != SMALL {
            let again = read_chunks(Limits::AUTHENTICATED, [&encode(&whole.commands)[..]]);
            assert_eq!(again, Outcome { commands: whole.commands, end: Ok(0) }, "encoded again");
        }
    }
}
