//! A proxy in front of Redis that hides a restart of the server from its clients.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) struct Proxy {
    port: u16,
    /// How often a server closed its connection.
    lost: watch::Receiver<u32>,
}

impl Proxy {
    pub(crate) async fn start(redis_port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (report_loss, lost) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(pass(client, ([127, 0, 0, 1], redis_port).into(), report_loss.clone()));
            }
        });
        Self { port, lost }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Waits until the server has closed its connection.
    pub(crate) async fn wait_for_server_loss(&mut self) {
        self.lost.wait_for(|times| *times > 0).await.unwrap();
    }
}

async fn pass(mut client: TcpStream, redis: SocketAddr, report_loss: watch::Sender<u32>) {
    let mut server = TcpStream::connect(redis).await.unwrap();
    let (mut request, mut response) = ([0; 4096], [0; 4096]);
    let mut is_lost = false;
    loop {
        tokio::select! {
            count = client.read(&mut request) => {
                let Ok(count @ 1..) = count else { return };
                if is_lost {
                    server = TcpStream::connect(redis).await.unwrap();
                    is_lost = false;
                }
                server.write_all(&request[..count]).await.unwrap();
            }
            count = server.read(&mut response), if !is_lost => match count {
                Ok(count @ 1..) => client.write_all(&response[..count]).await.unwrap(),
                _ => {
                    is_lost = true;
                    report_loss.send_modify(|times| *times += 1);
                }
            },
        }
    }
}
