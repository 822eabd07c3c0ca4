//! A connection whose writes fail with `TimedOut` once the client has read nothing for too long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::tls::Stream;

pub(super) struct WriteTimeout {
    stream: Stream,
    timeout: Duration,
    /// Runs while a write is blocked.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    pub(super) fn new(stream: Stream, timeout: Duration) -> Self {
        Self { stream, timeout, timer: None }
    }

    fn or_time_out<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.timer = None;
            return outcome;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.or_time_out(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.or_time_out(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.or_time_out(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.or_time_out(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (WriteTimeout, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let accepted = Stream::Plain(listener.accept().await.unwrap().0);
        (WriteTimeout::new(accepted, Duration::from_secs(30)), client)
    }

    /// With a paused clock, tokio advances the time when no task can run.
    #[tokio::test(start_paused = true)]
    async fn a_write_times_out_only_if_the_client_reads_nothing() {
        let (mut server, client) = pair().await;
        let answer = vec![0; 1024 * 1024];
        let error = loop {
            if let Err(error) = server.write_all(&answer).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);

        let (mut server, mut client) = pair().await;
        let reader = tokio::spawn(async move {
            // Large enough that the kernel reports room for the next write.
            let mut chunk = vec![0; 8 * 1024 * 1024];
            let mut total = 0;
            while client.read_exact(&mut chunk).await.is_ok() {
                total += chunk.len();
                tokio::time::sleep(Duration::from_secs(20)).await;
            }
            total
        });
        for _ in 0..32 {
            server.write_all(&answer).await.expect("the client reads every 20 seconds");
        }
        drop(server);
        assert_eq!(reader.await.unwrap(), 32 * 1024 * 1024);
    }
}
