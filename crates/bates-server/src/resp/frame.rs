//! Parses one command from the front of a growing buffer: an array of bulk strings, or a line typed by hand. Must never
//! copy an argument of an array, allocate for bytes that have not arrived, or scan a byte twice except in a length.

use super::error::ProtocolError;
use super::limits::Limits;
use super::{inline, length};

/// Capacity that a connection keeps between commands: 16 KiB of spans.
const SPANS_CAPACITY: usize = 1024;
const TEXT_CAPACITY: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Reads commands from the front of a growing buffer.
///
/// After an incomplete command, the next call continues where the last one stopped, and reads again at most the 20 bytes
/// of a length. Nothing is allocated once there is capacity for the arguments.
///
/// ```
/// use bates_server::resp::{Limits, Progress, Reader};
///
/// let mut reader = Reader::new(Limits::AUTHENTICATED);
/// let mut buffer = b"*2\r\n$4\r\nINCR\r\n$5\r\nse".to_vec();
/// assert!(matches!(reader.read(&buffer)?, Progress::Incomplete { missing: 5 }));
///
/// buffer.extend_from_slice(b"q:a\r\nPING\r\n");
/// let Progress::Command(command) = reader.read(&buffer)? else { panic!("a whole command") };
/// assert_eq!((command.name(), command.arg(1)), (&b"INCR"[..], Some(&b"seq:a"[..])));
/// let rest = &buffer[command.consumed()..];
///
/// let Progress::Command(command) = reader.read(rest)? else { panic!("a whole command") };
/// assert_eq!(command.name(), b"PING");
/// # Ok::<(), bates_server::resp::ProtocolError>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    /// The arguments so far: in the buffer for an array, in `text` for a line.
    spans: Vec<Span>,
    /// The words of a line, without their quotes.
    text: Vec<u8>,
    /// How many arguments of the array are missing; 0 before its header is read.
    pending: usize,
    /// The first byte of the command that is not parsed yet.
    at: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A command. The caller drops its bytes from the buffer before it reads again.
    Command(Command<'a>),
    /// An empty line or array, which Redis does not answer. The caller drops these bytes.
    Empty { consumed: usize },
    /// A part of a command; at least `missing` bytes are to come. The caller appends them to the buffer.
    Incomplete { missing: usize },
}

/// At least one argument; the first is the name.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    source: &'a [u8],
    spans: &'a [Span],
    consumed: usize,
}

impl Reader {
    pub fn new(limits: Limits) -> Self {
        Self { limits, spans: Vec::new(), text: Vec::new(), pending: 0, at: 0 }
    }

    /// Changes the limits, as after `AUTH`, from the next length on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Bytes of memory that the reader holds beside the buffer.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.text.capacity()
    }

    /// After [`Progress::Incomplete`], call with the same bytes and more after them; after an error, close the connection.
    #[inline]
    pub fn read<'a>(&'a mut self, buffer: &'a [u8]) -> Result<Progress<'a>, ProtocolError> {
        match buffer.first() {
            None => Ok(Progress::Incomplete { missing: 1 }),
            Some(b'*') => self.read_array(buffer),
            Some(_) => self.read_line(buffer),
        }
    }

    #[inline]
    fn read_array<'a>(&'a mut self, buffer: &'a [u8]) -> Result<Progress<'a>, ProtocolError> {
        if self.pending == 0 {
            let header = length::read(&buffer[1..]).map_err(|_| ProtocolError::InvalidMultibulkLength)?;
            let Some((count, used)) = header else { return Ok(Progress::Incomplete { missing: 1 }) };
            // Redis reads any number below 1 as an empty array.
            let count = usize::try_from(count).unwrap_or(0);
            if count == 0 {
                return Ok(Progress::Empty { consumed: 1 + used });
            }
            self.limits.check_count(count)?;
            self.clear();
            (self.pending, self.at) = (count, 1 + used);
        }
        if let Some(missing) = self.read_arguments(buffer)? {
            return Ok(Progress::Incomplete { missing });
        }
        let consumed = std::mem::take(&mut self.at);
        Ok(Progress::Command(Command { source: buffer, spans: &self.spans, consumed }))
    }

    /// Reads the arguments that have arrived; returns how many bytes the next one needs.
    #[inline]
    fn read_arguments(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        while self.pending > 0 {
            let Some((marker, rest)) = buffer.get(self.at..).and_then(<[u8]>::split_first) else {
                return Ok(Some(1));
            };
            if *marker != b'$' {
                return Err(ProtocolError::ExpectedBulk { found: *marker });
            }
            let header = length::read(rest).map_err(|_| ProtocolError::InvalidBulkLength)?;
            let Some((bytes, used)) = header else { return Ok(Some(1)) };
            let bytes = usize::try_from(bytes).map_err(|_| ProtocolError::InvalidBulkLength)?;
            self.limits.check_argument(bytes)?;
            let start = self.at + 1 + used;
            let end = start + bytes;
            self.limits.check_command(end + 2)?;
            match buffer.get(end..end + 2) {
                Some(b"\r\n") => {}
                Some(_) => return Err(ProtocolError::ExpectedCrlf),
                None => return Ok(Some(end + 2 - buffer.len())),
            }
            self.spans.push(Span { start, end });
            self.at = end + 2;
            self.pending -= 1;
        }
        Ok(None)
    }

    fn read_line<'a>(&'a mut self, buffer: &'a [u8]) -> Result<Progress<'a>, ProtocolError> {
        let limit = self.limits.inline_bytes_max;
        // Invariant: only the window is read, so that the result does not depend on how the bytes were split into packets.
        let window = &buffer[..buffer.len().min(limit.saturating_add(1))];
        if inline::begins_as_http(window) {
            return Err(ProtocolError::Http);
        }
        let unread = window.get(self.at..).unwrap_or_default();
        match unread.iter().position(|byte| matches!(byte, b'\n' | 0)) {
            None if buffer.len() > limit => Err(ProtocolError::InlineTooLong { limit }),
            None => {
                self.at = window.len();
                Ok(Progress::Incomplete { missing: 1 })
            }
            Some(offset) if unread[offset] == 0 => Err(ProtocolError::ZeroByte),
            Some(offset) => self.split_line(&window[..self.at + offset]),
        }
    }

    fn split_line(&mut self, line: &[u8]) -> Result<Progress<'_>, ProtocolError> {
        self.clear();
        inline::split(line, &self.limits, &mut self.text, &mut self.spans)?;
        let consumed = line.len() + 1;
        if self.spans.is_empty() {
            return Ok(Progress::Empty { consumed });
        }
        Ok(Progress::Command(Command { source: &self.text, spans: &self.spans, consumed }))
    }

    #[inline]
    fn clear(&mut self) {
        self.at = 0;
        self.spans.clear();
        self.text.clear();
        if self.spans.capacity() > SPANS_CAPACITY || self.text.capacity() > TEXT_CAPACITY {
            self.spans.shrink_to(SPANS_CAPACITY);
            self.text.shrink_to(TEXT_CAPACITY);
        }
    }
}

impl<'a> Command<'a> {
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.arg(0).unwrap_or_default()
    }

    /// The number of arguments, including the name; at least 1.
    #[inline]
    pub fn arg_count(&self) -> usize {
        self.spans.len()
    }

    #[inline]
    pub fn arg(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| &self.source[span.start..span.end])
    }

    #[inline]
    pub fn args(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let source = self.source;
        self.spans.iter().map(move |span| &source[span.start..span.end])
    }

    #[inline]
    pub fn consumed(&self) -> usize {
        self.consumed
    }
}
