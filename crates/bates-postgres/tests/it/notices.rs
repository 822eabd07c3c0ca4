//! Nodes notify each other of new documents. A notified node delivers them at once; other nodes find them by
//! polling.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    DeliverFuture, Delivery, DeliveryError, DocumentAction, DocumentContent, DocumentFilter, DocumentState,
    Machine, Relay, RelaySettings, ScopeParams, SeriesSpec, Settlement, Sink, SystemRuntime, Verdict,
};
use bates_postgres::{OpenMode, PostgresStore, Settings};
use bates_testkit::{PrivatePgBouncer, PrivatePostgres};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::documents::{LONG, claim, document};
use super::{connect, open_store, pin_series};

/// Sends the number of each delivered document to the test.
struct ChannelSink(mpsc::UnboundedSender<Box<str>>);

impl Sink for ChannelSink {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        Box::pin(async {
            let taken = deliveries.iter().map(|delivery| self.0.send(delivery.number.clone()));
            taken
                .map(|sent| sent.map_err(|_| DeliveryError::Unavailable("the test has ended".into())))
                .collect()
        })
    }

    fn batch_max(&self) -> usize {
        100
    }

    fn describe(&self) -> String {
        "a test".to_owned()
    }
}

/// A node that numbers letters. It delivers them only after [`Node::deliver`].
struct Node {
    store: Arc<PostgresStore>,
    machine: Arc<Machine<PostgresStore>>,
}

impl Node {
    async fn open(url: &str) -> Self {
        let store = Arc::new(open_store(url, Settings::default(), OpenMode::New).await.unwrap());
        let spec = SeriesSpec { has_sink: true, ..SeriesSpec::new("letter".parse().unwrap(), "L{seq}") };
        let machine = Machine::open(store.clone(), vec![spec], Arc::new(SystemRuntime)).await.unwrap();
        Self { store, machine: Arc::new(machine) }
    }

    async fn number(&self) -> Box<str> {
        let (entry, content) =
            (self.machine.series("letter").unwrap(), DocumentContent::Document("{}".into()));
        self.machine.assign(&entry, ScopeParams::default(), content, None, "test").await.unwrap().number
    }

    fn deliver(&self, poll: Duration) -> RunningRelay {
        let ((sender, taken), (stop, stopped)) = (mpsc::unbounded_channel(), watch::channel(false));
        let settings = RelaySettings { poll, ..RelaySettings::default() };
        let entry = self.machine.series("letter").unwrap();
        let relay = Relay::new(self.machine.clone(), entry, Box::new(ChannelSink(sender)), settings);
        RunningRelay { taken, stop, running: tokio::spawn(relay.run(stopped)) }
    }
}

/// The relay of a node, and the numbers that it delivers.
struct RunningRelay {
    taken: mpsc::UnboundedReceiver<Box<str>>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl RunningRelay {
    /// Lets another node number documents, and waits for the delivery of each before the next.
    async fn expect_all_of(&mut self, writer: &Node, count: usize) {
        for _ in 0..count {
            let number = writer.number().await;
            assert_eq!(self.taken.recv().await, Some(number));
        }
    }

    async fn stop(self) {
        self.stop.send(true).unwrap();
        self.running.await.unwrap();
    }
}

/// Two nodes that receive each other's notices.
async fn two_nodes(server: &PrivatePostgres) -> [PostgresStore; 2] {
    let first = open_store(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    pin_series(&first).await;
    let second = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    wait_until_listening(&first).await;
    wait_until_listening(&second).await;
    [first, second]
}

/// Waits until a node receives notices, and discards the one that stands for notices it may have missed.
async fn wait_until_listening(store: &PostgresStore) {
    has_notice(store, "document");
    while !store.receives_notices() {
        tokio::task::yield_now().await;
    }
    while has_notice(store, "document") {}
}

fn has_notice(store: &PostgresStore, series: &str) -> bool {
    let series = series.parse().unwrap();
    let notice = std::pin::pin!(store.document_notice(&series));
    notice.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

async fn wait_for_notice(store: &PostgresStore, series: &str) {
    store.document_notice(&series.parse().unwrap()).await;
}

/// The idle sessions that nodes use for notices, and whose last query is like this.
async fn notice_sessions(client: &Client, last_query: &str) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity
               WHERE application_name = 'bates outbox' AND state = 'idle' AND query LIKE $1";
    client.query(sql, &[&last_query]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notified_node_delivers_the_documents_of_another_at_once() {
    let server = PrivatePostgres::start().unwrap();
    let (writer, other) = (Node::open(&server.url()).await, Node::open(&server.url()).await);
    // It polls once at the start and then hourly, so it delivers only what it is notified of.
    let mut relay = other.deliver(LONG);
    wait_until_listening(&other.store).await;
    relay.expect_all_of(&writer, 20).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_notified_of_documents_and_retries_of_others_but_not_of_its_own() {
    let server = PrivatePostgres::start().unwrap();
    let [first, second] = two_nodes(&server).await;
    let document_id = first.assign(document("a")).await.unwrap().document_id;
    wait_for_notice(&second, "document").await;
    first.assign(document("a")).await.unwrap();
    wait_for_notice(&second, "document").await;
    let dead = |claimed: Delivery| {
        let verdict = Verdict::Dead("bad".into());
        Settlement { document_id: claimed.document_id, attempt: claimed.attempt, verdict }
    };
    let settled = claim(&first, 10, LONG).await.into_iter().map(dead).collect();
    assert_eq!(first.settle_claims(settled).await, Ok(2));
    first.apply_action(document_id, DocumentAction::Retry, None).await.unwrap();
    wait_for_notice(&second, "document").await;
    let all = DocumentFilter { state: Some(DocumentState::Dead), ..DocumentFilter::default() };
    assert_eq!(first.apply_action_to_all(all, DocumentAction::Retry, None).await, Ok(1));
    wait_for_notice(&second, "document").await;
    // Notices arrive in order: this one comes after all that the first node sent itself.
    assert!(!has_notice(&first, "last"));
    connect(&server.url()).await.batch_execute("NOTIFY bates_outbox, 'test last'").await.unwrap();
    wait_for_notice(&first, "last").await;
    assert!(!has_notice(&first, "document"));
}

/// The trigger claims each document at once, as the writer's own relay may.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_not_notified_of_documents_that_are_already_claimed() {
    let server = PrivatePostgres::start().unwrap();
    let [first, second] = two_nodes(&server).await;
    let client = connect(&server.url()).await;
    let trigger = "CREATE FUNCTION claim() RETURNS trigger LANGUAGE plpgsql AS
                       'BEGIN NEW.attempts := 1; NEW.is_claimed := true; RETURN NEW; END';
                   CREATE TRIGGER claimed BEFORE INSERT ON bates.document FOR EACH ROW EXECUTE FUNCTION claim()";
    client.batch_execute(trigger).await.unwrap();
    first.assign(document("a")).await.unwrap();
    while notice_sessions(&client, "%pg_notify('bates\\_outbox'%").await.is_empty() {}
    assert!(!has_notice(&second, "last"));
    client.batch_execute("NOTIFY bates_outbox, 'test last'").await.unwrap();
    wait_for_notice(&second, "last").await;
    assert!(!has_notice(&second, "document"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_lost_its_connection_listens_again() {
    let server = PrivatePostgres::start().unwrap();
    let [first, second] = two_nodes(&server).await;
    let client = connect(&server.url()).await;
    let ended =
        "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bates outbox'";
    let ended: Vec<i32> = client.query(ended, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(ended.len(), 2);
    let is_new = |pid: &i32| !ended.contains(pid);
    while notice_sessions(&client, "%LISTEN bates\\_outbox").await.into_iter().filter(is_new).count() < 2 {}
    wait_until_listening(&second).await;
    first.assign(document("a")).await.unwrap();
    wait_for_notice(&second, "document").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_pgbouncer_documents_are_delivered_without_notices() {
    let server = PrivatePostgres::start().unwrap();
    let bouncer = PrivatePgBouncer::start(&server).unwrap();
    let (writer, other) = (Node::open(&bouncer.url()).await, Node::open(&bouncer.url()).await);
    let mut relay = other.deliver(Duration::from_millis(10));
    relay.expect_all_of(&writer, 20).await;
    relay.stop().await;
    // A node with a direct connection is notified all the same.
    let direct = Node::open(&server.url()).await;
    let mut relay = direct.deliver(LONG);
    wait_until_listening(&direct.store).await;
    relay.expect_all_of(&writer, 5).await;
    relay.stop().await;
    assert!(!writer.store.receives_notices() && !other.store.receives_notices());
}
