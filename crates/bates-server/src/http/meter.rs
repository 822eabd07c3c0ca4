//! The bytes that a connection holds: those of a head or body that arrived and are not read yet, the body of the request
//! that is served, and the answer that the client has not read. Must never count a byte that was only announced.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::Extensions;
use bates_core::{ErrorCode, Machine, ScopeParams, SeriesEntry, Store};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::problem::{Problem, Result};
use super::write_timeout::WriteTimeout;
use crate::Caller;
use crate::defense::{COUNTED_ANSWER_MIN, Slot, answer_bytes};

/// What a handler holds of a body at most: of a stream of documents, its lines that are being numbered.
const BODY_BYTES_MAX: usize = 17 * 1024 * 1024;

/// What one connection holds.
#[derive(Debug)]
pub(super) struct Meter {
    /// `None`: a connection for probes, whose few bytes do not count.
    slot: Option<Slot>,
    /// In the buffer of hyper.
    unread: AtomicUsize,
    body: AtomicUsize,
    /// Reserved for an answer that is being made.
    work: AtomicUsize,
    answer: AtomicUsize,
    /// Whether there was no memory for the body.
    is_out_of_memory: AtomicBool,
    /// Whether the secret of the caller ended before the body did.
    has_caller_ended: AtomicBool,
}

impl Meter {
    pub(super) fn new(slot: Option<Slot>) -> Self {
        let [unread, body, work, answer] = [const { AtomicUsize::new(0) }; 4];
        let [is_out_of_memory, has_caller_ended] = [const { AtomicBool::new(false) }; 2];
        Self { slot, unread, body, work, answer, is_out_of_memory, has_caller_ended }
    }

    pub(super) fn slot(&self) -> Option<&Slot> {
        self.slot.as_ref()
    }

    /// A head was read: its bytes left the buffer.
    pub(super) fn begin_request(&self) {
        self.unread.store(0, Ordering::Relaxed);
        self.body.store(0, Ordering::Relaxed);
        self.is_out_of_memory.store(false, Ordering::Relaxed);
        self.has_caller_ended.store(false, Ordering::Relaxed);
        if let Some(slot) = &self.slot {
            slot.begin();
        }
        // Only releases.
        self.settle();
    }

    /// Reserves memory for making a large answer, until the answer exists.
    pub(super) fn reserve(&self, bytes: usize) -> Result<()> {
        self.work.store(bytes, Ordering::Relaxed);
        if self.slot.as_ref().is_none_or(|slot| slot.try_hold(self.held())) {
            return Ok(());
        }
        self.work.store(0, Ordering::Relaxed);
        let detail = format!("there is no memory for an answer of about {bytes} bytes now");
        Err(Problem::new(ErrorCode::OVERLOADED, detail))
    }

    /// The answer exists; the client reads it.
    pub(super) fn end_request(&self) {
        self.clear(&self.work);
        if let Some(slot) = &self.slot {
            slot.rest();
            slot.touch();
        }
    }

    pub(super) fn is_out_of_memory(&self) -> bool {
        self.is_out_of_memory.load(Ordering::Relaxed)
    }

    pub(super) fn has_caller_ended(&self) -> bool {
        self.has_caller_ended.load(Ordering::Relaxed)
    }

    fn add(&self, part: &AtomicUsize, bytes: usize) -> bool {
        part.fetch_add(bytes, Ordering::Relaxed);
        self.settle()
    }

    fn clear(&self, part: &AtomicUsize) {
        if part.swap(0, Ordering::Relaxed) > 0 {
            self.settle();
        }
    }

    /// Returns whether there is memory for what the connection holds.
    fn settle(&self) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.hold(self.held()))
    }

    fn held(&self) -> usize {
        let [unread, body, work, answer] =
            [&self.unread, &self.body, &self.work, &self.answer].map(|part| part.load(Ordering::Relaxed));
        // The buffer of hyper grows to twice what it holds.
        2 * unread + body.min(BODY_BYTES_MAX) + work + answer
    }

    fn touch(&self) {
        if let Some(slot) = &self.slot {
            slot.touch();
        }
    }
}

/// Reserves memory for an answer with `count` numbers of a scope.
pub(super) fn reserve_numbers<S: Store>(
    extensions: &Extensions,
    machine: &Machine<S>,
    entry: &SeriesEntry,
    params: ScopeParams<'_>,
    count: u64,
) -> Result<()> {
    if count < COUNTED_ANSWER_MIN {
        return Ok(());
    }
    reserve(extensions, answer_bytes(count, machine.number_bytes_max(entry, params)?))
}

/// Reserves memory for the answer to the request with these extensions, in place of an earlier reservation.
pub(super) fn reserve(extensions: &Extensions, bytes: usize) -> Result<()> {
    extensions.get::<Arc<Meter>>().map_or(Ok(()), |meter| meter.reserve(bytes))
}

fn out_of_memory() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, "the memory for requests is used up")
}

/// A connection whose bytes are counted.
pub(super) struct MeteredStream {
    stream: WriteTimeout,
    meter: Arc<Meter>,
}

impl MeteredStream {
    pub(super) fn new(stream: WriteTimeout, meter: Arc<Meter>) -> Self {
        Self { stream, meter }
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        let has_memory = self.meter.add(&self.meter.unread, read);
        Poll::Ready(if has_memory { Ok(()) } else { Err(out_of_memory()) })
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.meter.touch();
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
        self.meter.touch();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it holds nothing more to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.meter.clear(&self.meter.answer);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Which part of a connection the frames of a body belong to.
enum Part {
    /// Ends as soon as the secret of the caller does: a slow body must not act for it.
    Request(Caller),
    Answer,
}

/// A body whose frames are counted as they pass.
struct MeteredBody<B> {
    body: B,
    meter: Arc<Meter>,
    part: Part,
}

pub(super) fn meter_request<B>(body: B, meter: &Arc<Meter>, caller: Caller) -> Body
where
    B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<axum::BoxError>,
{
    Body::new(MeteredBody { body, meter: meter.clone(), part: Part::Request(caller) })
}

pub(super) fn meter_answer(body: Body, meter: &Arc<Meter>) -> Body {
    Body::new(MeteredBody { body, meter: meter.clone(), part: Part::Answer })
}

impl<B> MeteredBody<B> {
    fn check_caller(&self) -> io::Result<()> {
        match &self.part {
            Part::Request(caller) if caller.has_ended() => {
                self.meter.has_caller_ended.store(true, Ordering::Relaxed);
                Err(io::Error::new(io::ErrorKind::PermissionDenied, "the secret of the caller has ended"))
            }
            Part::Request(_) | Part::Answer => Ok(()),
        }
    }

    fn count(&self, bytes: usize) -> bool {
        let meter = &self.meter;
        if matches!(self.part, Part::Answer) {
            return meter.add(&meter.answer, bytes);
        }
        let unread = meter.unread.load(Ordering::Relaxed);
        meter.unread.store(unread.saturating_sub(bytes), Ordering::Relaxed);
        let has_memory = meter.add(&meter.body, bytes);
        if !has_memory {
            meter.is_out_of_memory.store(true, Ordering::Relaxed);
        }
        has_memory
    }
}

impl<B> hyper::body::Body for MeteredBody<B>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Err(ended) = self.check_caller() {
            return Poll::Ready(Some(Err(ended.into())));
        }
        let Some(frame) = frame else { return Poll::Ready(None) };
        let frame = frame.map_err(Into::into)?;
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        Poll::Ready(Some(if self.count(bytes) { Ok(frame) } else { Err(out_of_memory().into()) }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for MeteredBody<B> {
    fn drop(&mut self) {
        // An answer that is written may still hold the request: a stream of documents does.
        if matches!(self.part, Part::Answer) {
            self.meter.clear(&self.meter.body);
        }
    }
}
