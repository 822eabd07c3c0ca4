//! Pools on one Redis server. Decides nothing: sends commands, each with a timeout, and reads the replies.

use std::sync::OnceLock;
use std::time::Duration;

use bates_core::{
    ListRefusal, ListStatus, PoolFuture, PoolServer, PushRequest, ServerIdentity, ServerStatus,
};
use redis::aio::{ConnectionLike as _, ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, Pipeline, RedisResult, Value};
use tokio::time::timeout;
use uuid::Uuid;

use crate::description::PoolDescriptionError;
use crate::reply::{identity, integer, read_verdict, server_error, text, unexpected};
use crate::scripts::Keys;
use crate::{push, scripts};

type Result<T, E = Box<str>> = std::result::Result<T, E>;

/// A healthy server replies sooner.
const TIMEOUT: Duration = Duration::from_secs(2);

const STATUS_COMMANDS: usize = 4;

/// A Redis server that holds pools. It may be down: each call tries to connect again.
pub struct RedisPool {
    client: Client,
    /// Created by the first call, because it needs a runtime.
    connection: OnceLock<ConnectionManager>,
    /// The id of the store, as markers name it.
    store: Box<str>,
}

impl RedisPool {
    pub fn new(address: &str, store: Uuid) -> Result<Self, PoolDescriptionError> {
        let refused = |problem: redis::RedisError| PoolDescriptionError::Address(problem.to_string().into());
        let (client, store) = (Client::open(address).map_err(refused)?, store.to_string().into());
        Ok(Self { client, connection: OnceLock::new(), store })
    }

    /// The server and its database, without a password.
    pub(crate) fn address(&self) -> (String, i64) {
        let info = self.client.get_connection_info();
        (info.addr().to_string(), info.redis_settings().db())
    }

    fn connection(&self) -> Result<ConnectionManager> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection.clone());
        }
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT))
            .set_number_of_retries(0);
        let connection = ConnectionManager::new_lazy_with_config(self.client.clone(), config);
        let connection = connection.map_err(|error| error.to_string())?;
        Ok(self.connection.get_or_init(|| connection).clone())
    }

    async fn run_all(&self, commands: &Pipeline) -> Result<Vec<Value>> {
        let mut connection = self.connection()?;
        let count = commands.cmd_iter().count();
        in_time(connection.req_packed_commands(commands, 0, count)).await
    }

    async fn run(&self, command: &Cmd) -> Result<Value> {
        let value = in_time(self.connection()?.req_packed_command(command)).await?;
        server_error(&value).map_or(Ok(value), Err)
    }

    async fn read_status(&self, keys: &[Box<str>]) -> Result<ServerStatus> {
        let mut commands = Pipeline::with_capacity(2 + keys.len() * STATUS_COMMANDS);
        commands.cmd("INFO").arg("server").cmd("INFO").arg("replication");
        for key in keys {
            let Keys { list, marker, .. } = Keys::of(key);
            commands.cmd("LLEN").arg(list).cmd("LINDEX").arg(list).arg(0);
            commands.cmd("HMGET").arg(marker).arg(&["epoch", "to", "store"]).cmd("TYPE").arg(list);
        }
        let replies = self.run_all(&commands).await?;
        let (Some(about_server), Some(about_replication)) = (replies.first(), replies.get(1)) else {
            return Err("the answer of Redis is empty".into());
        };
        let server = identity(about_server, about_replication)?;
        let lists = replies[2..].chunks(STATUS_COMMANDS).map(|list| self.read_list(list)).collect();
        Ok(ServerStatus { server, lists })
    }

    fn read_list(&self, list: &[Value]) -> ListStatus {
        let field = |at: usize| match list.get(2) {
            Some(Value::Array(fields)) => fields.get(at),
            _ => None,
        };
        let marker = |at: usize| field(at).and_then(integer);
        let store = field(2).and_then(text);
        ListStatus {
            is_of_other_store: store.is_some_and(|store| *store != *self.store),
            // If the key holds no list, LLEN fails: the level is 0, and a push is refused.
            level: list.first().and_then(integer).unwrap_or_default(),
            head: list.get(1).and_then(text).map(Into::into),
            // An earlier version of Bates wrote no store into the marker: without an epoch, the list is renewed.
            epoch: marker(0).filter(|_| store.is_some()),
            pushed_to: marker(1),
            is_not_a_list: matches!(list.get(2), Some(Value::ServerError(_)))
                || list.get(3).and_then(text).is_some_and(|kind| kind != "list" && kind != "none"),
        }
    }

    fn epoch_script(&self, text: &str, keys: &[&str], epoch: u64, server: &ServerIdentity) -> Cmd {
        let mut command = scripts::script(text, keys);
        command.arg(epoch).arg(&*server.run).arg(&*server.replication).arg(&*self.store).take()
    }

    /// Runs a script on the lock of a pool; returns whether it succeeded.
    async fn run_on_lock(&self, script: &str, key: &str, token: &str, ttl: Option<Duration>) -> Result<bool> {
        let mut command = scripts::script(script, &[&Keys::of(key).lock]);
        command.arg(token);
        if let Some(ttl) = ttl {
            command.arg(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        }
        match self.run(&command).await? {
            Value::Int(done) => Ok(done == 1),
            Value::Okay => Ok(true),
            Value::Nil => Ok(false),
            other => Err(unexpected(&other)),
        }
    }
}

impl PoolServer for RedisPool {
    fn status<'a>(&'a self, keys: &'a [Box<str>]) -> PoolFuture<'a, ServerStatus> {
        Box::pin(self.read_status(keys))
    }

    fn lock<'a>(&'a self, key: &'a str, token: &'a str, ttl: Duration) -> PoolFuture<'a, bool> {
        Box::pin(self.run_on_lock(scripts::LOCK, key, token, Some(ttl)))
    }

    fn extend<'a>(&'a self, key: &'a str, token: &'a str, ttl: Duration) -> PoolFuture<'a, bool> {
        Box::pin(self.run_on_lock(scripts::EXTEND, key, token, Some(ttl)))
    }

    fn unlock<'a>(&'a self, key: &'a str, token: &'a str) -> PoolFuture<'a, ()> {
        Box::pin(async move { self.run_on_lock(scripts::UNLOCK, key, token, None).await.map(drop) })
    }

    fn discard<'a>(&'a self, lists: &'a [(Box<str>, u64)], server: &'a ServerIdentity) -> PoolFuture<'a, ()> {
        Box::pin(async move {
            let mut commands = Pipeline::with_capacity(lists.len());
            for (key, epoch) in lists {
                let Keys { list, marker, .. } = Keys::of(key);
                commands.add_command(self.epoch_script(scripts::DISCARD, &[list, &marker], *epoch, server));
            }
            let replies = self.run_all(&commands).await?;
            replies.iter().find_map(server_error).map_or(Ok(()), Err)
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a str,
        epoch: u64,
        server: &'a ServerIdentity,
    ) -> PoolFuture<'a, Result<(), ListRefusal>> {
        Box::pin(async move {
            let Keys { list, marker, stage, .. } = Keys::of(key);
            let command = self.epoch_script(scripts::RENEW, &[list, &marker, &stage], epoch, server);
            read_verdict(&self.run(&command).await?)
        })
    }

    fn push<'a>(&'a self, key: &str, push: PushRequest<'_>) -> PoolFuture<'a, Result<(), ListRefusal>> {
        let commands = push::commands(key, &push, &self.store);
        Box::pin(async move { push::outcome(&self.run_all(&commands).await?) })
    }

    fn describe(&self) -> String {
        self.address().0
    }
}

async fn in_time<T>(request: impl Future<Output = RedisResult<T>>) -> Result<T> {
    let answer = timeout(TIMEOUT, request).await.map_err(|_| "Redis did not answer in time")?;
    answer.map_err(|error| error.to_string().into())
}
