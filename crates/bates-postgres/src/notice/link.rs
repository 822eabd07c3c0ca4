//! The connection on which a node speaks and listens: apart from the pool, so that no call waits for it. It reconnects by
//! itself, with growing pauses.
//!
//! PgBouncer in transaction mode shares sessions, and notices go astray. So a node first listens to a channel that only it
//! knows, and calls it on another connection; only if it hears that does it listen to the others.

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
use super::speak::speak;
use crate::connect::{self, Settings};
use crate::error::{Failed, OpenError};
use crate::retry;

const CHANNEL: &str = "bates_outbox";

/// Notifies other nodes of series with unclaimed documents; without any, nothing is sent and no lock taken. Bulk decisions
/// are always sent. The sort makes the planner use the index. A crash may lose it, so its lock does not wait for the disk.
const TELL: &str = "SELECT set_config('synchronous_commit', 'off', true),
        pg_notify('bates_outbox', $1 || ' ' || told.series)
    FROM UNNEST($2) AS told (series)
    WHERE told.series = '*' OR (
        SELECT true FROM bates.document AS found
        WHERE found.series = told.series AND state = 'pending' AND attempts = 0 AND due_at <= now()
        ORDER BY due_at LIMIT 1)";

const CALL: &str = "SELECT pg_notify($1, '')";

const CALL_TAKES: Duration = Duration::from_secs(1);

/// After this a node that did not hear itself tries again. Each try may leave a line in the log of PgBouncer.
const TRY_ANEW: Duration = Duration::from_mins(15);

const LONG: Duration = Duration::from_hours(24 * 365);

const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A dead peer is noticed after a minute or two, not after hours.
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

    /// Reconnects for ever. Failures are not reported: nothing depends on it.
    pub(super) async fn run(self, board: Arc<Board>) {
        let mut pause = PAUSE_MIN;
        loop {
            let began = Instant::now();
            let _ = self.attend(&board).await;
            board.cut_off();
            if began.elapsed() > PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            sleep(SystemRuntime.jittered(pause, 0.5..1.0)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn attend(&self, board: &Board) -> Result<(), Failed> {
        let (client, connection) = self.in_time(self.config.connect(self.tls.clone())).await?;
        let own = Own { channel: format!("bates_{}", Uuid::now_v7().simple()), is_heard: Notify::new() };
        tokio::select! {
            () = hear(connection, board, &own) => Ok(()),
            talked = self.talk(&client, board, &own) => talked,
        }
    }

    async fn talk(&self, client: &Client, board: &Board, own: &Own) -> Result<(), Failed> {
        let hears = self.hears_itself(client, own).await?;
        if hears {
            let listen = format!("UNLISTEN {}; LISTEN {CHANNEL}", own.channel);
            self.in_time(client.batch_execute(&listen)).await?;
            board.listens();
        }
        let until = Instant::now() + if hears { LONG } else { TRY_ANEW };
        speak(board, until, |series| self.tell(client, &board.node, series)).await
    }

    /// Whether notices to this session arrive. Must not use the connection while it waits: a stray notice could come back
    /// on it.
    async fn hears_itself(&self, client: &Client, own: &Own) -> Result<bool, Failed> {
        let listen = format!("LISTEN {}", own.channel);
        self.in_time(client.batch_execute(&listen)).await?;
        self.in_time(self.call(&own.channel)).await?;
        Ok(timeout(CALL_TAKES, own.is_heard.notified()).await.is_ok())
    }

    /// Calls a channel on a connection of its own: those of the pool serve callers.
    async fn call(&self, channel: &str) -> Result<(), Failed> {
        let mut config = self.config.clone();
        config.application_name("bates call");
        let (client, connection) = config.connect(self.tls.clone()).await?;
        let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&channel, Type::TEXT)];
        tokio::select! {
            called = client.execute_typed(CALL, &parameters) => Ok(called.map(drop)?),
            ended = connection => Ok(ended?),
        }
    }

    async fn tell(&self, client: &Client, node: &str, series: Vec<String>) -> Result<(), Failed> {
        let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&node, Type::TEXT), (&series, Type::TEXT_ARRAY)];
        self.in_time(client.execute_typed(TELL, &parameters)).await.map(drop)
    }

    fn in_time<T, E: Into<Failed>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, Failed>> {
        retry::in_time(Instant::now() + self.settings.patience, work)
    }
}

struct Own {
    channel: String,
    is_heard: Notify,
}

async fn hear<S, T>(mut connection: Connection<S, T>, board: &Board, own: &Own)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            AsyncMessage::Notification(word) if word.channel() == CHANNEL => board.hear(word.payload()),
            AsyncMessage::Notification(word) if word.channel() == own.channel => own.is_heard.notify_one(),
            _ => {}
        }
    }
}
