//! A stream whose writes fail once the client has taken nothing of its answer for too long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

pub(super) struct Patient {
    stream: TcpStream,
    patience: Duration,
    /// Runs while a write waits for room.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    fn or_end<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.or_end(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.or_end(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.or_end(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.or_end(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Patient, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Patient::new(listener.accept().await.unwrap().0, Duration::from_secs(30)), client)
    }

    /// The clock moves by itself when nothing else can happen.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_gone_and_one_that_is_slow_is_not() {
        let (mut server, client) = pair().await;
        let answer = vec![0; 1024 * 1024];
        let gone = loop {
            if let Err(error) = server.write_all(&answer).await {
                break error;
            }
        };
        assert_eq!(gone.kind(), io::ErrorKind::TimedOut);
        drop(client);

        let (mut server, mut client) = pair().await;
        let reader = tokio::spawn(async move {
            // As much at a time as makes the kernel tell that there is room again.
            let mut taken = vec![0; 8 * 1024 * 1024];
            let mut all = 0;
            while client.read_exact(&mut taken).await.is_ok() {
                all += taken.len();
                tokio::time::sleep(Duration::from_secs(20)).await;
            }
            all
        });
        for _ in 0..32 {
            server.write_all(&answer).await.expect("something is taken every twenty seconds");
        }
        drop(server);
        assert_eq!(reader.await.unwrap(), 32 * 1024 * 1024);
    }
}
