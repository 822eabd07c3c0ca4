//! The list of a pool in Redis: the connection, the server, the epoch of the list, and the script that pops.

use std::time::Duration;

use bates_api::{Attachment, marker_key};
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Pipeline, Value};
use tokio::time::timeout;

use crate::bates_source::BatesSource;
use crate::error::{ListError, OpenError};
use crate::pool::Settings;

/// Pops if Bates filled the list in this epoch. Keys: list, marker. Arguments: epoch, run, replication, count, store.
///
/// Invariant: one script compares and pops. A server that restarted, took over or was restored has another run or
/// replication id; a new list has a marker with another epoch or store, and a flushed list has none. (Redis 6.0 has no
/// `LPOP n`.)
const POP: &str = "
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
if run ~= ARGV[2] or replication ~= ARGV[3] then return {'server'} end
local marker = redis.call('HMGET', KEYS[2], 'epoch', 'store')
if marker[2] and marker[2] ~= ARGV[5] then return {'store'} end
if marker[1] ~= ARGV[1] then return {'epoch', marker[1] or 'none'} end
local numbers = redis.call('LRANGE', KEYS[1], 0, ARGV[4] - 1)
if #numbers > 0 then redis.call('LTRIM', KEYS[1], #numbers, -1) end
return {'popped', numbers}";

/// The same without comparing the server: a bug that tests must find.
#[cfg(feature = "planted-bugs")]
const POP_ANYWHERE: &str = "
local epoch = redis.call('HGET', KEYS[2], 'epoch')
if epoch ~= ARGV[1] then return {'epoch', epoch or 'none'} end
local numbers = redis.call('LRANGE', KEYS[1], 0, ARGV[4] - 1)
if #numbers > 0 then redis.call('LTRIM', KEYS[1], #numbers, -1) end
return {'popped', numbers}";

/// For each request to Redis. A caller waits only until its own deadline; numbers that come later go to the next call.
const TIMEOUT: Duration = Duration::from_secs(1);

type Result<T, E = ListError> = std::result::Result<T, E>;

pub(crate) struct RedisList {
    client: Client,
    script: &'static str,
    connection: Option<MultiplexedConnection>,
    /// Whether `attached` was checked with Bates for this connection.
    is_attached: bool,
    attached: Option<AttachedList>,
}

/// A list that Bates filled, and the server on which it did.
struct AttachedList {
    server: Server,
    list: Attachment,
}

/// Identifies a Redis server together with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// `run_id`: changes at each start.
    pub(crate) run: Box<str>,
    /// `master_replid`: changes at each promotion of a replica.
    pub(crate) replication: Box<str>,
}

impl RedisList {
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        let refused = |problem: redis::RedisError| OpenError::Redis(problem.to_string().into());
        let client = Client::open(&*settings.redis).map_err(refused)?;
        #[cfg(feature = "planted-bugs")]
        let script = if settings.ignores_server { POP_ANYWHERE } else { POP };
        #[cfg(not(feature = "planted-bugs"))]
        let script = POP;
        Ok(Self { client, script, connection: None, is_attached: false, attached: None })
    }

    /// Takes numbers from the list; none if it is empty, or if `count` is 0.
    ///
    /// Invariant: an error drops the connection, so that no later call reads a late answer.
    pub(crate) async fn pop_many(&mut self, bates: &BatesSource, count: usize) -> Result<Vec<String>> {
        // Taken out during the call, so that a cancelled call drops it, too.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                self.is_attached = false;
                connect(&self.client).await?
            }
        };
        let mut popped = self.pop(bates, &mut connection, count).await;
        if let Err(ListError::Mismatch(_)) = popped {
            self.is_attached = false;
            popped = self.pop(bates, &mut connection, count).await;
        }
        let numbers = popped?;
        self.connection = Some(connection);
        Ok(numbers)
    }

    async fn pop(
        &mut self,
        bates: &BatesSource,
        connection: &mut MultiplexedConnection,
        count: usize,
    ) -> Result<Vec<String>> {
        if !self.is_attached {
            self.attach(bates, connection).await?;
        }
        match &self.attached {
            Some(AttachedList { server, list }) if count > 0 => {
                let mut command = redis::cmd("EVAL");
                command.arg(self.script).arg(2).arg(&list.key).arg(marker_key(&list.key));
                command.arg(list.epoch).arg(&*server.run).arg(&*server.replication).arg(count);
                command.arg(&list.store);
                let request = connection.req_packed_command(&command);
                read_numbers(timeout(TIMEOUT, request).await.map_err(|_| ListError::TimedOut("the script"))??)
            }
            _ => Ok(Vec::new()),
        }
    }

    async fn attach(&mut self, bates: &BatesSource, connection: &mut MultiplexedConnection) -> Result<()> {
        let server = read_server(connection).await?;
        let is_known = self.attached.as_ref().is_some_and(|attached| attached.server == server);
        match bates.attach(&server).await {
            Ok(list) => self.attached = Some(AttachedList { server, list }),
            // Invariant: while Bates is away, only the server for which the epoch is known, with the same data, is used.
            Err(error) if error.is_away() && is_known => {}
            Err(error) => return Err(ListError::Attach(error)),
        }
        self.is_attached = true;
        Ok(())
    }
}

async fn connect(client: &Client) -> Result<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let connecting = client.get_multiplexed_async_connection_with_config(&config);
    Ok(timeout(TIMEOUT, connecting).await.map_err(|_| ListError::TimedOut("the connection"))??)
}

async fn read_server(connection: &mut MultiplexedConnection) -> Result<Server> {
    let mut info = Pipeline::with_capacity(2);
    info.cmd("INFO").arg("server").cmd("INFO").arg("replication");
    let request = connection.req_packed_commands(&info, 0, 2);
    let answers = timeout(TIMEOUT, request).await.map_err(|_| ListError::TimedOut("INFO"))??;
    let field = |at: usize, name: &'static str| {
        let about = answers.get(at).and_then(text).unwrap_or_default();
        let found = about.lines().filter_map(|line| line.split_once(':')).find(|(field, _)| *field == name);
        let value = found.map(|(_, value)| value.trim().into());
        value.ok_or_else(|| ListError::Unexpected(format!("INFO has no {name}").into()))
    };
    Ok(Server { run: field(0, "run_id")?, replication: field(1, "master_replid")? })
}

fn read_numbers(answer: Value) -> Result<Vec<String>> {
    let unexpected = |answer: &Value| ListError::Unexpected(format!("unexpected answer {answer:?}").into());
    let answer = answer.extract_error()?;
    let Value::Array(parts) = &answer else { return Err(unexpected(&answer)) };
    match (parts.first().and_then(text), parts.get(1)) {
        (Some("popped"), Some(Value::Array(numbers))) => {
            let numbers: Option<_> = numbers.iter().map(|number| text(number).map(str::to_owned)).collect();
            numbers.ok_or_else(|| unexpected(&answer))
        }
        (Some("store"), _) => Err(ListError::Mismatch("another installation of Bates fills it".into())),
        (Some("server"), _) => Err(ListError::Mismatch("the server restarted or was replaced".into())),
        (Some("epoch"), Some(epoch)) => {
            Err(ListError::Mismatch(format!("its epoch is {}", text(epoch).unwrap_or("none")).into()))
        }
        _ => Err(unexpected(&answer)),
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}
