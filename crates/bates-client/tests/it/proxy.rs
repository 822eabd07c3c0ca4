//! A proxy in front of Redis that hides from its clients that the server behind it went away and came back.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) struct Proxy {
    port: u16,
    /// How often a server went away.
    lost: watch::Receiver<u32>,
}

impl Proxy {
    pub(crate) async fn start(redis_port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (losing, lost) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(pass(client, ([127, 0, 0, 1], redis_port).into(), losing.clone()));
            }
        });
        Self { port, lost }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Waits until the server has gone away from the one client that there is.
    pub(crate) async fn server_is_lost(&mut self) {
        self.lost.wait_for(|times| *times > 0).await.unwrap();
    }
}

async fn pass(mut client: TcpStream, redis: SocketAddr, losing: watch::Sender<u32>) {
    let mut server = TcpStream::connect(redis).await.unwrap();
    let (mut asked, mut answered) = ([0; 4096], [0; 4096]);
    let mut is_lost = false;
    loop {
        tokio::select! {
            count = client.read(&mut asked) => {
                let Ok(count @ 1..) = count else { return };
                if is_lost {
                    server = TcpStream::connect(redis).await.unwrap();
                    is_lost = false;
                }
                server.write_all(&asked[..count]).await.unwrap();
            }
            count = server.read(&mut answered), if !is_lost => match count {
                Ok(count @ 1..) => client.write_all(&answered[..count]).await.unwrap(),
                _ => {
                    is_lost = true;
                    losing.send_modify(|times| *times += 1);
                }
            },
        }
    }
}
