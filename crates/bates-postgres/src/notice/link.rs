//! The connection on which a node sends and receives notices. It is not part of the pool, so that no call waits for it. It
//! reconnects by itself, with growing pauses.
//!
//! PgBouncer in transaction mode shares sessions, so notices may not arrive. So a node first listens to a channel that only
//! it knows, and notifies that channel on another connection. It listens to other nodes only if this test notice arrives.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bates_connect::Address;
use bates_core::{Runtime as _, SystemRuntime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Connection};
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

use super::board::Board;
use super::send::send_notices;
use crate::connect::{self, Settings};
use crate::error::{Failure, OpenError};
use crate::retry;

const CHANNEL: &str = "bates_outbox";

/// Notifies other nodes of the series in `$2` with unclaimed documents; `*` is always sent. If there are none, it takes no
/// lock. The sort makes the planner use the index. A notice may be lost in a crash, so its commit does not wait for the disk.
const NOTIFY: &str = "SELECT set_config('synchronous_commit', 'off', true),
        pg_notify('bates_outbox', $1 || ' ' || written.series)
    FROM UNNEST($2) AS written (series)
    WHERE written.series = '*' OR (
        SELECT true FROM bates.document
        WHERE document.series = written.series AND state = 'pending' AND attempts = 0 AND due_at <= now()
        ORDER BY due_at LIMIT 1)";

const NOTIFY_CHANNEL: &str = "SELECT pg_notify($1, '')";

/// Max time until the test notice arrives.
const TEST_NOTICE_MAX: Duration = Duration::from_secs(1);

/// A node whose test notice did not arrive tries again after this. Each attempt may add a line to the log of PgBouncer.
const RETEST_AFTER: Duration = Duration::from_mins(15);

const FOREVER: Duration = Duration::from_hours(24 * 365);

const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// So that a dead connection is noticed after a minute or two, not after hours.
const KEEPALIVE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(super) struct Link {
    config: Config,
    tls: MakeRustlsConnect,
    settings: Settings,
}

impl Link {
    pub(super) fn new(address: &Address, settings: Settings) -> Result<Self, OpenError> {
        let mut config = address.config.clone();
        let name = format!("{} outbox", config.get_application_name().unwrap_or("bates"));
        config.application_name(name).keepalives_idle(KEEPALIVE);
        Ok(Self { config, tls: connect::connector(address)?, settings })
    }

    /// Reconnects forever. Failures are not reported, because nothing depends on notices.
    pub(super) async fn run(self, board: Arc<Board>) {
        let mut pause = PAUSE_MIN;
        loop {
            let began = Instant::now();
            let _ = self.run_connection(&board).await;
            board.stop_listening();
            if began.elapsed() > PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            sleep(SystemRuntime.jittered(pause, 0.5..1.0)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn run_connection(&self, board: &Board) -> Result<(), Failure> {
        let (client, connection) = self.in_time(self.config.connect(self.tls.clone())).await?;
        let test = SelfTest { channel: format!("bates_{}", Uuid::now_v7().simple()), arrived: Notify::new() };
        tokio::select! {
            () = receive(connection, board, &test) => Ok(()),
            ended = self.listen_and_send(&client, board, &test) => ended,
        }
    }

    async fn listen_and_send(&self, client: &Client, board: &Board, test: &SelfTest) -> Result<(), Failure> {
        let can_listen = self.can_listen(client, test).await?;
        if can_listen {
            let listen = format!("UNLISTEN {}; LISTEN {CHANNEL}", test.channel);
            self.in_time(client.batch_execute(&listen)).await?;
            board.start_listening();
        }
        let until = Instant::now() + if can_listen { FOREVER } else { RETEST_AFTER };
        send_notices(board, until, |series| self.notify(client, &board.node, series)).await
    }

    /// Whether notices arrive in this session. Sends nothing on the connection while it waits: behind PgBouncer, a statement
    /// could fetch the notice from another session.
    async fn can_listen(&self, client: &Client, test: &SelfTest) -> Result<bool, Failure> {
        let listen = format!("LISTEN {}", test.channel);
        self.in_time(client.batch_execute(&listen)).await?;
        self.in_time(self.notify_channel(&test.channel)).await?;
        Ok(timeout(TEST_NOTICE_MAX, test.arrived.notified()).await.is_ok())
    }

    /// Notifies a channel on a separate connection: those of the pool serve callers.
    async fn notify_channel(&self, channel: &str) -> Result<(), Failure> {
        let mut config = self.config.clone();
        config.application_name("bates call");
        let (client, connection) = config.connect(self.tls.clone()).await?;
        let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&channel, Type::TEXT)];
        tokio::select! {
            notified = client.execute_typed(NOTIFY_CHANNEL, &parameters) => Ok(notified.map(drop)?),
            ended = connection => Ok(ended?),
        }
    }

    async fn notify(&self, client: &Client, node: &str, series: Vec<String>) -> Result<(), Failure> {
        let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&node, Type::TEXT), (&series, Type::TEXT_ARRAY)];
        self.in_time(client.execute_typed(NOTIFY, &parameters)).await.map(drop)
    }

    fn in_time<T, E: Into<Failure>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, Failure>> {
        retry::in_time(Instant::now() + self.settings.timeout, work)
    }
}

/// A channel that only this connection knows, and whether its test notice has arrived.
struct SelfTest {
    channel: String,
    arrived: Notify,
}

async fn receive<S, T>(mut connection: Connection<S, T>, board: &Board, test: &SelfTest)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        let AsyncMessage::Notification(notice) = message else { continue };
        if notice.channel() == CHANNEL {
            board.receive(notice.payload());
        } else if notice.channel() == test.channel {
            test.arrived.notify_one();
        }
    }
}
