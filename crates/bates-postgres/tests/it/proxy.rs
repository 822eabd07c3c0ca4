//! A proxy in front of PostgreSQL that cuts connections at the worst moment: when a commit is on its way. Or it
//! lets them hang, as a network does that loses everything and says nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What becomes of the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It never reaches the server.
    Before,
    /// It reaches the server, and the answer never comes back.
    After,
    /// It is a rollback, it never reaches the server, and nobody is told.
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
    /// Whether nobody gets through after the next cut.
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
                // Where the server is away, so is the proxy: the client sees its connection end.
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

    /// Cuts the next commit, and lets nobody through afterwards.
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
    /// What becomes of these bytes, if they hold a commit that is to be cut.
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
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            Ok(count @ 1..) = client.read(&mut asked) => match state.cut_of(&asked[..count]) {
                None => if server.write_all(&asked[..count]).await.is_err() { return },
                Some(Cut::Before) => return state.has_cut.notify_one(),
                Some(Cut::Silence) => return std::future::pending().await,
                Some(Cut::After) => {
                    server.write_all(&asked[..count]).await.unwrap();
                    // The server has decided once it answers to the end; the client hears nothing of it.
                    let mut said = Vec::new();
                    while !said.ends_with(b"Z\0\0\0\x05I") {
                        let count = server.read(&mut answered).await.unwrap();
                        said.extend(&answered[..count]);
                    }
                    return state.has_cut.notify_one();
                }
            },
            Ok(count @ 1..) = server.read(&mut answered) => {
                if client.write_all(&answered[..count]).await.is_err() { return }
            }
            else => return,
        }
    }
}
