//! Connections: how many there may be, in all and from one address, and that probes are answered beyond them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use tokio::net::TcpSocket;

use super::super::running::Client;
use super::super::wire::exchange;
use super::{Rig, SECRET, code};

fn authenticated(rig: &Rig) -> Client {
    let mut client = Client::connect(rig.server.port).unwrap();
    assert_eq!(client.send(&["AUTH", SECRET]).as_deref(), Some("+OK"));
    client
}

/// What the Redis port sends to a client at another loopback address that pings it.
fn ping_from(address: &str, port: u16) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        let stream = socket.connect(format!("127.0.0.1:{port}").parse().unwrap()).await.unwrap();
        stream.into_std().unwrap()
    });
    let mut stream = stream;
    stream.set_nonblocking(false).unwrap();
    let _ = stream.write_all(b"PING\r\n");
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn one_address_has_at_most_its_number_of_connections_and_others_have_theirs() {
    let rig = Rig::start(&[("BATES_CONNECTIONS_PER_ADDRESS_MAX", "5")]);
    let mut clients: Vec<Client> = (0..5).map(|_| authenticated(&rig)).collect();
    let refused = exchange(&rig.server, b"PING\r\n");
    assert!(refused.starts_with("-BUSY too_many_connections: "), "{refused}");
    let (status, head, body) = rig.ask(SECRET, "GET /v1/series");
    assert_eq!((status, &*code(&body)), (503, "too_many_connections"), "{head}");
    assert_eq!(rig.status_of("/healthz"), 200);
    assert!(ping_from("127.0.0.2", rig.server.port).starts_with("-NOAUTH"));
    assert!(clients.iter_mut().all(|client| client.send(&["PING"]).as_deref() == Some("+PONG")));
    drop(clients);
    // The server notices the ends of connections within a moment.
    while rig.status(SECRET) != 200 {}
}

#[test]
fn probes_are_answered_while_all_slots_are_taken() {
    let rig = Rig::start(&[("BATES_CONNECTIONS_MAX", "8")]);
    let mut clients: Vec<Client> = (0..8).map(|_| authenticated(&rig)).collect();
    let is_full = || exchange(&rig.server, b"PING\r\n") == "-ERR max number of clients reached\r\n";
    assert!(is_full());
    // More than the server keeps beside its slots.
    let silent: Vec<TcpStream> =
        (0..600).map(|_| TcpStream::connect(("127.0.0.1", rig.server.http)).unwrap()).collect();
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(rig.status_of(probe), 200, "{probe}");
    }
    let (status, _, body) = rig.ask(SECRET, "GET /v1/series");
    assert_eq!((status, &*code(&body)), (503, "too_many_connections"));
    assert!(clients.iter_mut().all(|client| client.send(&["PING"]).as_deref() == Some("+PONG")));
    drop((silent, clients));
    while rig.status(SECRET) != 200 {}
}

#[test]
fn strangers_that_take_all_slots_give_way_to_a_caller() {
    let rig = Rig::start(&[("BATES_CONNECTIONS_MAX", "50"), ("BATES_STRANGER_REQUESTS_MAX", "1000")]);
    let strangers: Vec<TcpStream> =
        (0..50).map(|_| TcpStream::connect(("127.0.0.1", rig.server.port)).unwrap()).collect();
    let connect = || {
        let mut client = Client::connect(rig.server.port)?;
        client.send(&["AUTH", SECRET]).filter(|answer| answer == "+OK").map(|_| client)
    };
    // Strangers count as idle after two seconds.
    let mut client = loop {
        if let Some(client) = connect() {
            break client;
        }
    };
    assert_eq!(client.send(&["INCR", "counter:a"]).as_deref(), Some(":1"));
    assert!(rig.metric("bates_connections_closed_total{reason=\"idle\"}") >= 1);
    let mut oldest = &strangers[0];
    assert_eq!(oldest.read(&mut [0; 1]).unwrap_or(0), 0, "the longest idle was closed");
    assert_eq!(client.send(&["INCR", "counter:a"]).as_deref(), Some(":2"), "the caller stays");
}
