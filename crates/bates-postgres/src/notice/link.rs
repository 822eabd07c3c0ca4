//! The connection on which a node speaks and listens: apart from the pool, so that no call waits for it. It comes back
//! by itself, later and later while it cannot.
//!
//! Behind PgBouncer in transaction mode a session is anybody's, and what it listens to goes astray. So a node first
//! listens to a channel that only it knows, and has itself called on another connection; only if it hears that does it
//! listen to the others. What is left behind otherwise is a name that nobody ever calls again.

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

const CHANNEL: &str = "bates_outbox";

/// Tells others of series of which there is something that nobody has claimed yet; where there is none, nothing is sent
/// and no lock taken. Bulk decisions are told in any case. The sort makes the index the only good way. It may be
/// forgotten in a crash, so its lock does not last until it is on disk.
const TELL: &str = "SELECT set_config('synchronous_commit', 'off', true),
        pg_notify('bates_outbox', $1 || ' ' || told.series)
    FROM UNNEST($2) AS told (series)
    WHERE told.series = '*' OR (
        SELECT true FROM bates.document AS found
        WHERE found.series = told.series AND state = 'pending' AND tries = 0 AND due_at <= now()
        ORDER BY due_at LIMIT 1)";

const CALL: &str = "SELECT pg_notify($1, '')";

const CALL_TAKES: Duration = Duration::from_secs(1);

/// After so long a node that did not hear itself tries anew. Each try may leave a line in the log of PgBouncer.
const TRY_ANEW: Duration = Duration::from_mins(15);

const LONG: Duration = Duration::from_hours(24 * 365);

const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A peer that is gone without a word is noticed after a minute or two, not after hours.
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

    /// Connects again and again. Says nothing of what fails: nothing depends on it, and who needs the database says so.
    pub(super) async fn run(self, board: Arc<Board>) {
        let mut pause = PAUSE_MIN;
        loop {
            let began = Instant::now();
            // Whatever failed, another connection is as good as any.
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
        let connecting = async { Ok(self.config.connect(self.tls.clone()).await?) };
        let (client, connection) = self.in_time(connecting).await?;
        let own = Own { channel: format!("bates_{}", Uuid::now_v7().simple()), is_heard: Notify::new() };
        tokio::select! {
            () = hear(connection, board, &own) => Ok(()),
            talked = self.talk(&client, board, &own) => talked,
        }
    }

    /// Listens, if this session can, and speaks.
    async fn talk(&self, client: &Client, board: &Board, own: &Own) -> Result<(), Failed> {
        let hears = self.hears_itself(client, own).await?;
        if hears {
            let listen = format!("UNLISTEN {}; LISTEN {CHANNEL}", own.channel);
            self.in_time(async { Ok(client.batch_execute(&listen).await?) }).await?;
            board.listens();
        }
        let until = Instant::now() + if hears { LONG } else { TRY_ANEW };
        speak(board, until, |series| self.tell(client, &board.node, series)).await
    }

    /// Whether what is told to this session reaches us. Must not use the connection while it waits: what goes astray
    /// could come back on it.
    async fn hears_itself(&self, client: &Client, own: &Own) -> Result<bool, Failed> {
        let listen = format!("LISTEN {}", own.channel);
        self.in_time(async { Ok(client.batch_execute(&listen).await?) }).await?;
        self.in_time(self.call(&own.channel)).await?;
        Ok(timeout(CALL_TAKES, own.is_heard.notified()).await.is_ok())
    }

    /// Calls a channel on a connection that is there for nothing else: those of the pool belong to who waits for numbers.
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
        self.in_time(async { Ok(client.execute_typed(TELL, &parameters).await.map(drop)?) }).await
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
        let late = |_| Err(Failed::Passing("it did not answer in time".into()));
        timeout(self.settings.patience, work).await.unwrap_or_else(late)
    }
}

/// A channel that only this connection knows.
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
