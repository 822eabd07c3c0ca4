//! One connection: reads bytes, executes the commands in order, and writes their answers together. Must never hold
//! `ANSWER_BYTES_MAX` or more when a command begins: such answers are written first.

mod prefetch;
mod queue;

use std::io;
use std::pin::pin;
use std::sync::Arc;

use bates_core::{ErrorCode, Machine, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::command::{self, Call, Outcome, Request};
use super::listener::{Shared, send_refusal};
use super::session::Session;
use super::{Progress, Reader, Reply};
use crate::defense::Slot;
use crate::tls::{self, Stream};

/// Room for the next read: hundreds of short commands in a pipeline.
const READ_BYTES: usize = 16 * 1024;
const ANSWER_BYTES_MAX: usize = 256 * 1024;

pub(super) async fn serve<S: Store>(
    stream: TcpStream,
    slot: Slot,
    machine: Arc<Machine<S>>,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let settings = &shared.settings;
    // Counted before the handshake, which costs more than a command.
    let is_counted = !settings.access.is_open() && !slot.has_callers();
    if is_counted && slot.take_stranger_request().is_err() {
        if settings.tls.is_none() {
            let sentence = "too many connections without authentication came from this address";
            send_refusal(&stream, |reply| reply.code(ErrorCode::TOO_MANY_REQUESTS, sentence));
        }
        return Ok(());
    }
    let (config, write_timeout) = (settings.tls.as_ref().map(|tls| tls.resp()), settings.write_timeout);
    let Some((mut stream, peer)) = tls::accept(stream, config, settings.handshake_timeout, &stop).await
    else {
        return Ok(());
    };
    let client = shared.clients.register(peer.address, stream.tcp().local_addr().ok());
    let session = Session::new(shared, client, &peer, slot, is_counted);
    let ended = converse(&mut stream, Connection::new(session, machine), stop).await;
    if stream.is_tls() {
        // Without the alert, a client takes the end for an attack.
        timeout(write_timeout, stream.shutdown()).await??;
    }
    ended
}

async fn converse<S: Store>(
    stream: &mut Stream,
    mut connection: Connection<S>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    // Created once: a new future for each read would take a lock each time.
    let mut watched = stop.clone();
    let mut stopped = pin!(watched.changed());
    loop {
        let is_open = connection.execute(stream, &stop).await?;
        connection.write(stream).await?;
        if !is_open {
            return Ok(());
        }
        connection.input.reserve(READ_BYTES);
        if !connection.rest() {
            return connection.end_for_memory(stream).await;
        }
        let deadline = connection.command_deadline();
        let read = tokio::select! {
            // Reads first: usually the next commands have arrived already.
            biased;
            read = stream.read_buf(&mut connection.input) => read?,
            () = wait_until(deadline) => return Ok(()),
            // A dropped sender also means shutdown.
            _ = &mut stopped => return Ok(()),
        };
        if read == 0 {
            return Ok(());
        }
        connection.session.slot.begin();
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

struct Connection<S> {
    reader: Reader,
    session: Session,
    input: Vec<u8>,
    /// What arrived after an `EXEC`, while `input` has the commands of its transaction.
    suspended: Vec<u8>,
    output: Vec<u8>,
    machine: Arc<Machine<S>>,
    /// When the current command must have arrived, or the client must be authenticated.
    deadline: Option<Instant>,
}

impl<S: Store> Connection<S> {
    fn new(session: Session, machine: Arc<Machine<S>>) -> Self {
        let (reader, input) = (Reader::new(session.limits()), Vec::with_capacity(READ_BYTES));
        Self { reader, session, input, suspended: Vec::new(), output: Vec::new(), machine, deadline: None }
    }

    /// Executes every command that has arrived completely. Returns whether the connection stays open.
    async fn execute(&mut self, stream: &mut Stream, stop: &watch::Receiver<bool>) -> io::Result<bool> {
        let (mut at, mut prefetched_to) = (0, 0);
        let is_open = loop {
            // Before each command: a pipeline may go on for minutes after its secret was revoked.
            if self.session.end_invalid_caller() {
                self.reader.set_limits(self.session.limits());
            }
            let begun_at = at;
            match self.step(&mut at) {
                None => break true,
                Some(Outcome::Answered) => {}
                Some(Outcome::Deferred(request)) => {
                    if at < self.input.len() && begun_at >= prefetched_to {
                        prefetched_to = self.prefetch(begun_at);
                    }
                    self.answer(request).await?;
                }
                Some(Outcome::Queue(queue)) => self.execute_queue(queue, stream, stop).await?,
                Some(Outcome::LimitsChanged) => self.reader.set_limits(self.session.limits()),
                Some(Outcome::Quit) => break false,
            }
            // At shutdown, no further command is begun.
            if stop.has_changed().unwrap_or(true) {
                break false;
            }
            if self.output.len() >= ANSWER_BYTES_MAX {
                self.write(stream).await?;
            }
        };
        self.discard(at);
        Ok(is_open)
    }

    /// Executes the command at `at` without waiting, and moves past it. `None`: it has not arrived completely.
    fn step(&mut self, at: &mut usize) -> Option<Outcome> {
        let (consumed, outcome) = match self.reader.read(&self.input[*at..]) {
            Ok(Progress::Command(command)) => {
                let (session, output) = (&mut self.session, &mut self.output);
                let outcome = command::execute(Call { command, session, output }, &self.machine);
                (command.consumed(), outcome)
            }
            Ok(Progress::Empty { consumed }) => (consumed, Outcome::Answered),
            Ok(Progress::Incomplete { .. }) => return None,
            Err(error) => {
                if error.is_answered() {
                    Reply::new(&mut self.output, self.session.protocol).error("ERR", error);
                }
                (0, Outcome::Quit)
            }
        };
        *at += consumed;
        Some(outcome)
    }

    /// A large answer is made only if there is memory for it.
    async fn answer(&mut self, request: Request) -> io::Result<()> {
        if !self.hold() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let bytes = request.answer_bytes(&self.session, &self.machine);
        if bytes > 0 && !self.session.slot.try_hold(self.held_bytes() + bytes) {
            let sentence = format!("there is no memory for an answer of about {bytes} bytes now");
            let mut reply = Reply::new(&mut self.output, self.session.protocol);
            reply.code(ErrorCode::OVERLOADED, &sentence);
        } else {
            request.answer(&self.session, &self.machine, &mut self.output).await;
        }
        Ok(())
    }

    async fn write(&mut self, stream: &mut Stream) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        // Usually the socket has room for the answers, and no timer is needed.
        let written = stream.try_write(&self.output)?;
        if written < self.output.len() {
            if !self.hold() {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            let rest = async {
                stream.write_all(&self.output[written..]).await?;
                stream.flush().await
            };
            timeout(self.session.shared.settings.write_timeout, rest).await.map_err(io::Error::from)??;
        }
        self.output.clear();
        // Frees the memory of a large answer.
        self.output.shrink_to(ANSWER_BYTES_MAX);
        Ok(())
    }

    /// Tells how much the connection holds. `false`: there is no memory for it.
    fn hold(&self) -> bool {
        self.session.slot.hold(self.held_bytes())
    }

    fn held_bytes(&self) -> usize {
        let transaction = self.session.transaction.as_ref().map_or(0, |it| it.held_bytes());
        let input = self.input.capacity() + self.suspended.capacity();
        input + self.output.capacity() + self.reader.held_bytes() + transaction
    }

    /// As [`Self::hold`], and others may close the connection from here on if it stays silent.
    fn rest(&self) -> bool {
        self.session.slot.rest();
        self.session.slot.touch();
        self.hold()
    }

    /// Tells the client why, if its socket has room for a line.
    async fn end_for_memory(&mut self, stream: &mut Stream) -> io::Result<()> {
        (self.input, self.output) = (Vec::new(), Vec::new());
        let sentence = "the memory for requests is used up; this one was not read to its end";
        Reply::new(&mut self.output, self.session.protocol).code(ErrorCode::OVERLOADED, sentence);
        self.write(stream).await
    }

    fn discard(&mut self, executed: usize) {
        self.input.drain(..executed);
        if executed > 0 {
            self.deadline = None;
        }
        // Frees the memory of a large command.
        if self.input.is_empty() {
            self.input.shrink_to(READ_BYTES);
        }
    }

    /// Starts at the first byte of a command, so that a client cannot hold a connection open byte by byte. A client that
    /// is not authenticated has a deadline even while it is silent.
    fn command_deadline(&mut self) -> Option<Instant> {
        if self.input.is_empty() && self.session.is_authenticated() {
            return None;
        }
        let timeout = self.session.shared.settings.command_timeout;
        Some(*self.deadline.get_or_insert_with(|| Instant::now() + timeout))
    }
}
