//! Pools on one Redis server. Decides nothing: sends commands, each with a timeout, and reads the replies.

use std::sync::OnceLock;
use std::time::Duration;

use bates_core::{
    ListRefusal, ListStatus, PoolFuture, PushRequest, ServerIdentity, ServerStatus, SharedPool,
};
use redis::aio::{ConnectionLike as _, ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, Pipeline, RedisResult, Value};
use tokio::time::timeout;
use uuid::Uuid;

use crate::description::PoolDescriptionError;
use crate::push::Keys;
use crate::reply::{error, judged, server, strange, text, whole};
use crate::{push, scripts};

/// Longer than any reply of a healthy server takes.
const PATIENCE: Duration = Duration::from_secs(2);

const LOOK_COMMANDS: usize = 4;

/// The server may be down: each call tries again.
pub struct RedisPool {
    client: Client,
    /// Made with the first call, because it needs a runtime.
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

    fn connection(&self) -> Result<ConnectionManager, Box<str>> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection.clone());
        }
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE))
            .set_number_of_retries(0);
        let made = ConnectionManager::new_lazy_with_config(self.client.clone(), config)
            .map_err(|error| error.to_string())?;
        Ok(self.connection.get_or_init(|| made).clone())
    }

    async fn all(&self, commands: &Pipeline) -> Result<Vec<Value>, Box<str>> {
        let mut connection = self.connection()?;
        let count = commands.cmd_iter().count();
        in_time(connection.req_packed_commands(commands, 0, count)).await
    }

    async fn one(&self, command: &Cmd) -> Result<Value, Box<str>> {
        let value = in_time(self.connection()?.req_packed_command(command)).await?;
        error(&value).map_or(Ok(value), Err)
    }

    async fn looked(&self, keys: &[Box<str>]) -> Result<ServerStatus, Box<str>> {
        let mut commands = Pipeline::with_capacity(2 + keys.len() * LOOK_COMMANDS);
        commands.cmd("INFO").arg("server").cmd("INFO").arg("replication");
        for key in keys {
            let Keys { list, marker, .. } = Keys::of(key);
            commands.cmd("LLEN").arg(list).cmd("LINDEX").arg(list).arg(0);
            commands.cmd("HMGET").arg(marker).arg(&["epoch", "to", "store"]).cmd("TYPE").arg(list);
        }
        let replies = self.all(&commands).await?;
        let (Some(about_server), Some(about_replication)) = (replies.first(), replies.get(1)) else {
            return Err("Redis answered nothing".into());
        };
        let server = server(about_server, about_replication)?;
        let lists = replies[2..].chunks(LOOK_COMMANDS).map(|list| self.read(list)).collect();
        Ok(ServerStatus { server, lists })
    }

    fn read(&self, list: &[Value]) -> ListStatus {
        let field = |at: usize| match list.get(2) {
            Some(Value::Array(fields)) => fields.get(at),
            _ => None,
        };
        let marker = |at: usize| field(at).and_then(whole);
        let store = field(2).and_then(text);
        ListStatus {
            is_foreign: store.is_some_and(|store| *store != *self.store),
            // A key that is not a list has none of our numbers, and a push will say so.
            level: list.first().and_then(whole).unwrap_or_default(),
            head: list.get(1).and_then(text).map(Into::into),
            // A marker without a store is of an earlier version: the list is renewed.
            epoch: marker(0).filter(|_| store.is_some()),
            pushed_to: marker(1),
            is_not_a_list: matches!(list.get(2), Some(Value::ServerError(_)))
                || list.get(3).and_then(text).is_some_and(|kind| kind != "list" && kind != "none"),
        }
    }

    fn epoch_script(&self, text: &str, keys: &[&str], epoch: u64, server: &ServerIdentity) -> Cmd {
        let mut command = push::script(text, keys);
        command.arg(epoch).arg(&*server.run).arg(&*server.replication).arg(&*self.store).take()
    }

    /// Runs a script on the lock of a pool; answers whether it succeeded.
    async fn locked(
        &self,
        script: &str,
        key: &str,
        token: &str,
        lasts: Option<Duration>,
    ) -> Result<bool, Box<str>> {
        let mut command = push::script(script, &[&Keys::of(key).lock]);
        command.arg(token);
        if let Some(lasts) = lasts {
            command.arg(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
        }
        match self.one(&command).await? {
            Value::Int(done) => Ok(done == 1),
            Value::Okay => Ok(true),
            Value::Nil => Ok(false),
            other => Err(strange(&other)),
        }
    }
}

impl SharedPool for RedisPool {
    fn status<'a>(&'a self, keys: &'a [Box<str>]) -> PoolFuture<'a, ServerStatus> {
        Box::pin(self.looked(keys))
    }

    fn lock<'a>(&'a self, key: &'a str, token: &'a str, lasts: Duration) -> PoolFuture<'a, bool> {
        Box::pin(self.locked(scripts::LOCK, key, token, Some(lasts)))
    }

    fn extend<'a>(&'a self, key: &'a str, token: &'a str, lasts: Duration) -> PoolFuture<'a, bool> {
        Box::pin(self.locked(scripts::EXTEND, key, token, Some(lasts)))
    }

    fn unlock<'a>(&'a self, key: &'a str, token: &'a str) -> PoolFuture<'a, ()> {
        Box::pin(async move { self.locked(scripts::UNLOCK, key, token, None).await.map(drop) })
    }

    fn discard<'a>(&'a self, lists: &'a [(Box<str>, u64)], server: &'a ServerIdentity) -> PoolFuture<'a, ()> {
        Box::pin(async move {
            let mut commands = Pipeline::with_capacity(lists.len());
            for (key, epoch) in lists {
                let Keys { list, marker, .. } = Keys::of(key);
                commands.add_command(self.epoch_script(scripts::DISCARD, &[list, &marker], *epoch, server));
            }
            let replies = self.all(&commands).await?;
            replies.iter().find_map(error).map_or(Ok(()), Err)
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
            judged(&self.one(&command).await?)
        })
    }

    fn push<'a>(&'a self, key: &str, push: PushRequest<'_>) -> PoolFuture<'a, Result<(), ListRefusal>> {
        let commands = push::commands(key, &push, &self.store);
        Box::pin(async move { push::outcome(&self.all(&commands).await?) })
    }

    fn describe(&self) -> String {
        // Without a password.
        self.address().0
    }
}

async fn in_time<T>(asked: impl Future<Output = RedisResult<T>>) -> Result<T, Box<str>> {
    let answered = timeout(PATIENCE, asked).await.map_err(|_| "Redis did not answer in time")?;
    answered.map_err(|error| error.to_string().into())
}
