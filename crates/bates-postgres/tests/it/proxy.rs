//! A proxy in front of PostgreSQL that cuts a connection during a commit, or lets it hang, as a network does
//! that loses packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What happens to the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The commit never reaches the server.
    Before,
    /// The commit reaches the server, but the answer is lost.
    After,
    /// The next rollback never reaches the server, and the connection hangs.
    Silence,
}

/// A proxy; its connections end with the runtime.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: Mutex<Option<Cut>>,
    /// Whether the proxy refuses all connections after the next cut.
    closes: AtomicBool,
    is_closed: AtomicBool,
    has_cut: Notify,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<State>::default();
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // If the server is down, the client sees its connection close.
                if !shared.is_closed.load(Ordering::SeqCst)
                    && let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await
                {
                    tokio::spawn(pass(client, server, shared.clone()));
                }
            }
        });
        Self { port, state }
    }

    /// Cuts the next commit.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.state.cut.lock() = Some(cut);
    }

    /// Cuts the next commit, and refuses all connections afterwards.
    pub(crate) fn cut_and_close(&self, cut: Cut) {
        self.state.closes.store(true, Ordering::SeqCst);
        self.cut(cut);
    }

    pub(crate) async fn has_cut(&self) {
        self.state.has_cut.notified().await;
    }

    pub(crate) fn open(&self) {
        self.state.closes.store(false, Ordering::SeqCst);
        self.state.is_closed.store(false, Ordering::SeqCst);
    }
}

impl State {
    /// How to cut these bytes, if they contain the commit to cut.
    fn cut_of(&self, bytes: &[u8]) -> Option<Cut> {
        let cut = self.cut.lock().take_if(|cut| {
            let end: &[u8] = if *cut == Cut::Silence { b"ROLLBACK\0" } else { b"COMMIT\0" };
            bytes.windows(end.len()).any(|window| window == end)
        });
        if cut.is_some() && self.closes.load(Ordering::SeqCst) {
            self.is_closed.store(true, Ordering::SeqCst);
        }
        cut
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, state: Arc<State>) {
    let (mut request, mut response) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            Ok(count @ 1..) = client.read(&mut request) => match state.cut_of(&request[..count]) {
                None => if server.write_all(&request[..count]).await.is_err() { return },
                Some(Cut::Before) => return state.has_cut.notify_one(),
                Some(Cut::Silence) => return std::future::pending().await,
                Some(Cut::After) => {
                    server.write_all(&request[..count]).await.unwrap();
                    // The outcome is decided once the server has answered completely; the client gets no part
                    // of it.
                    let mut answer = Vec::new();
                    while !answer.ends_with(b"Z\0\0\0\x05I") {
                        let count = server.read(&mut response).await.unwrap();
                        answer.extend(&response[..count]);
                    }
                    return state.has_cut.notify_one();
                }
            },
            Ok(count @ 1..) = server.read(&mut response) => {
                if client.write_all(&response[..count]).await.is_err() { return }
            }
            else => return,
        }
    }
}
