//! HTTP answers when the store fails.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;

use bates_core::{Machine, SeriesSpec, SystemRuntime};
use bates_server::{Access, http};
use bates_testkit::{Fault, MemoryStore};
use tokio::sync::oneshot;

/// Serves one series until the returned sender is dropped.
fn serve(store: Arc<MemoryStore>, settings: http::Settings) -> (SocketAddr, oneshot::Sender<()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let (address_sender, address) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let series = SeriesSpec::new("counter".parse().unwrap(), "{seq}");
            let machine = Machine::open(store, vec![series], Arc::new(SystemRuntime)).await.unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            address_sender.send(listener.local_addr().unwrap()).unwrap();
            let stop = async {
                let _ = stopped.await;
            };
            http::serve(listener, Arc::new(machine), settings, stop).await;
        });
    });
    (address.recv().unwrap(), stop)
}

fn settings() -> http::Settings {
    http::Settings::new(Arc::new(Access::new(None)))
}

fn request_lines(address: SocketAddr, count: u64) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "POST /v1/series/counter/next?count={count} HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\nConnection: close\r\n\r\n").unwrap();
    stream
}

#[test]
fn a_stream_does_not_look_complete_when_its_store_fails() {
    let store: Arc<MemoryStore> = Arc::default();
    // A failed refill in the background reaches no caller, so the store fails until a caller waits for it.
    store.plan(&[[Fault::None; 4].as_slice(), &[Fault::BeforeWrite; 1_000]].concat());
    let (address, _stop) = serve(store, settings());
    let mut answer = Vec::new();
    // The server may close the connection in the middle of a chunk.
    let _ = request_lines(address, 1_000_000).read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("\r\n1\n2\n3\n"), "{}", &text[..200]);
    assert!(!text.ends_with("0\r\n\r\n"), "an empty last chunk would mark it as complete");
}

#[test]
fn an_error_before_the_first_line_sets_the_status() {
    let store: Arc<MemoryStore> = Arc::default();
    store.plan(&[Fault::BeforeWrite]);
    let (address, _stop) = serve(store, settings());
    let mut answer = String::new();
    request_lines(address, 10).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("\"may_burn\":true"), "{answer}");
}
