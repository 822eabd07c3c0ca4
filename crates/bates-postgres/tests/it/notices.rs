//! Nodes tell each other what they wrote: whoever is told delivers it, and whoever is not looks for it all the same.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    Claimed, DeliverFuture, Delivery, DeliveryError, DocumentAction, DocumentContent, DocumentFilter,
    DocumentState, Machine, Relay, RelaySettings, ScopeParams, SeriesSpec, Settlement, Sink, SystemRuntime,
    Verdict,
};
use bates_postgres::{OpenMode, PostgresStore, Settings};
use bates_testkit::{PrivatePgBouncer, PrivatePostgres};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::documents::{LONG, claimed, document};
use super::{connect, opened, pinned};

/// Passes on the numbers that it is given.
struct Taking(mpsc::UnboundedSender<Box<str>>);

impl Sink for Taking {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        Box::pin(async {
            let taken = deliveries.iter().map(|delivery| self.0.send(delivery.number.clone()));
            taken.map(|sent| sent.map_err(|_| DeliveryError::Unavailable("nobody counts".into()))).collect()
        })
    }

    fn batch_max(&self) -> usize {
        100
    }

    fn describe(&self) -> String {
        "a test".to_owned()
    }
}

/// A node that numbers letters; it delivers none unless a relay is started.
struct Node {
    store: Arc<PostgresStore>,
    machine: Arc<Machine<PostgresStore>>,
}

impl Node {
    async fn open(url: &str) -> Self {
        let store = Arc::new(opened(url, Settings::default(), OpenMode::New).await.unwrap());
        let spec = SeriesSpec { has_sink: true, ..SeriesSpec::new("letter".parse().unwrap(), "L{seq}") };
        let machine = Machine::open(store.clone(), vec![spec], Arc::new(SystemRuntime)).await.unwrap();
        Self { store, machine: Arc::new(machine) }
    }

    async fn number(&self) -> Box<str> {
        let (entry, content) =
            (self.machine.series("letter").unwrap(), DocumentContent::Document("{}".into()));
        self.machine.assign(&entry, ScopeParams::default(), content, None, "test").await.unwrap().number
    }

    fn deliver(&self, poll: Duration) -> Delivered {
        let ((sender, taken), (stop, stopped)) = (mpsc::unbounded_channel(), watch::channel(false));
        let settings = RelaySettings { poll, ..RelaySettings::default() };
        let entry = self.machine.series("letter").unwrap();
        let relay = Relay::new(self.machine.clone(), entry, Box::new(Taking(sender)), settings);
        Delivered { taken, stop, running: tokio::spawn(relay.run(stopped)) }
    }
}

/// What a node delivers.
struct Delivered {
    taken: mpsc::UnboundedReceiver<Box<str>>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Delivered {
    /// Another node numbers; each when the one before was taken.
    async fn all_of(&mut self, writer: &Node, count: usize) {
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

/// Two nodes that hear each other.
async fn two_nodes(server: &PrivatePostgres) -> [PostgresStore; 2] {
    let first = opened(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    pinned(&first).await;
    let second = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    hears(&first).await;
    hears(&second).await;
    [first, second]
}

/// Waits until a node hears others, and forgets what it may have missed before.
async fn hears(store: &PostgresStore) {
    is_woken(store, "document");
    while !store.receives_notices() {
        tokio::task::yield_now().await;
    }
    while is_woken(store, "document") {}
}

fn is_woken(store: &PostgresStore, series: &str) -> bool {
    let series = series.parse().unwrap();
    let woken = std::pin::pin!(store.document_notice(&series));
    woken.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

async fn woken(store: &PostgresStore, series: &str) {
    store.document_notice(&series.parse().unwrap()).await;
}

/// Sessions of nodes that are apart, and did this last.
async fn apart(client: &Client, last: &str) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity
               WHERE application_name = 'bates outbox' AND state = 'idle' AND query LIKE $1";
    client.query(sql, &[&last]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_numbers_another_delivers_because_it_is_told() {
    let server = PrivatePostgres::start().unwrap();
    let (writer, other) = (Node::open(&server.url()).await, Node::open(&server.url()).await);
    // It looks once, and then once in hours.
    let mut delivered = other.deliver(LONG);
    hears(&other.store).await;
    delivered.all_of(&writer, 20).await;
    delivered.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_hears_others_and_not_itself_and_of_decisions_as_of_documents() {
    let server = PrivatePostgres::start().unwrap();
    let [first, second] = two_nodes(&server).await;
    let document_id = first.assign(document("a")).await.unwrap().document_id;
    woken(&second, "document").await;
    first.assign(document("a")).await.unwrap();
    woken(&second, "document").await;
    let dead = |claimed: Claimed| {
        let verdict = Verdict::Dead("bad".into());
        Settlement { document_id: claimed.document_id, attempt: claimed.attempt, verdict }
    };
    let settled = claimed(&first, 10, LONG).await.into_iter().map(dead).collect();
    assert_eq!(first.settle_claims(settled).await, Ok(2));
    first.apply_action(document_id, DocumentAction::Retry).await.unwrap();
    woken(&second, "document").await;
    let all = DocumentFilter { state: Some(DocumentState::Dead), ..DocumentFilter::default() };
    assert_eq!(first.apply_action_to_all(all, DocumentAction::Retry).await, Ok(1));
    woken(&second, "document").await;
    // Words arrive in order: this one behind all of its own.
    assert!(!is_woken(&first, "last"));
    connect(&server.url()).await.batch_execute("NOTIFY bates_outbox, 'somebody last'").await.unwrap();
    woken(&first, "last").await;
    assert!(!is_woken(&first, "document"));
}

/// As if the writer's own relay had it at once.
#[tokio::test(flavor = "multi_thread")]
async fn others_are_not_told_of_what_is_claimed_already() {
    let server = PrivatePostgres::start().unwrap();
    let [first, second] = two_nodes(&server).await;
    let client = connect(&server.url()).await;
    let claimed = "CREATE FUNCTION claim() RETURNS trigger LANGUAGE plpgsql AS
                       'BEGIN NEW.tries := 1; NEW.is_claimed := true; RETURN NEW; END';
                   CREATE TRIGGER claimed BEFORE INSERT ON bates.document FOR EACH ROW EXECUTE FUNCTION claim()";
    client.batch_execute(claimed).await.unwrap();
    first.assign(document("a")).await.unwrap();
    while apart(&client, "%pg_notify('bates\\_outbox'%").await.is_empty() {}
    assert!(!is_woken(&second, "last"));
    client.batch_execute("NOTIFY bates_outbox, 'somebody last'").await.unwrap();
    woken(&second, "last").await;
    assert!(!is_woken(&second, "document"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_cut_off_listens_again() {
    let server = PrivatePostgres::start().unwrap();
    let [first, second] = two_nodes(&server).await;
    let client = connect(&server.url()).await;
    let ended =
        "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bates outbox'";
    let ended: Vec<i32> = client.query(ended, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(ended.len(), 2);
    let is_new = |pid: &i32| !ended.contains(pid);
    while apart(&client, "%LISTEN bates\\_outbox").await.into_iter().filter(is_new).count() < 2 {}
    hears(&second).await;
    first.assign(document("a")).await.unwrap();
    woken(&second, "document").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_pgbouncer_nothing_is_heard_and_everything_delivered() {
    let server = PrivatePostgres::start().unwrap();
    let bouncer = PrivatePgBouncer::start(&server).unwrap();
    let (writer, other) = (Node::open(&bouncer.url()).await, Node::open(&bouncer.url()).await);
    let mut delivered = other.deliver(Duration::from_millis(10));
    delivered.all_of(&writer, 20).await;
    delivered.stop().await;
    // Whoever is connected directly hears of them all the same.
    let direct = Node::open(&server.url()).await;
    let mut delivered = direct.deliver(LONG);
    hears(&direct.store).await;
    delivered.all_of(&writer, 5).await;
    delivered.stop().await;
    assert!(!writer.store.receives_notices() && !other.store.receives_notices());
}
