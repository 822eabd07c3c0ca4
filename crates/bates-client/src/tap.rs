//! The way to the list in Redis: a connection, the server behind it, and the epoch that Bates told for that server. Owns
//! the script that pops.

use std::time::Duration;

use bates_api::{Attachment, marker_key};
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Pipeline, Value};
use tokio::time::timeout;

use crate::bates::Bates;
use crate::error::{OpenError, TapError};
use crate::pool::Settings;

/// Pops, if Bates filled the list. Keys: list, marker. Arguments: epoch, run, replication, count, store.
///
/// Invariant: what is compared is compared in the step that pops. A server that restarted, took over or was rewound has
/// another run or another replication, whatever stands between it and the client; a list that was begun anew has a
/// marker of another epoch or store, and one that was flushed has none. (`LPOP` takes a count only since Redis 6.2.)
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

/// The same for whatever server: a bug that tests must find.
#[cfg(feature = "planted-bugs")]
const POP_ANYWHERE: &str = "
local epoch = redis.call('HGET', KEYS[2], 'epoch')
if epoch ~= ARGV[1] then return {'epoch', epoch or 'none'} end
local numbers = redis.call('LRANGE', KEYS[1], 0, ARGV[4] - 1)
if #numbers > 0 then redis.call('LTRIM', KEYS[1], #numbers, -1) end
return {'popped', numbers}";

/// For each step of a connection that is made.
const STEP: Duration = Duration::from_secs(1);

/// How long the script has to answer. Callers wait for their deadline only; what comes later is at hand for the next.
const SCRIPT: Duration = Duration::from_secs(1);

/// A list is tried with what is known, and once more with what was learned.
const TRIES: usize = 2;

pub(crate) struct Tap {
    client: Client,
    script: &'static str,
    link: Option<MultiplexedConnection>,
    /// Whether Bates was told which server is behind the link.
    is_attached: bool,
    known: Option<Known>,
}

/// The server that an epoch was learned for, and the list.
struct Known {
    server: Server,
    list: Attachment,
}

/// Which memory a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// Another one after each start.
    pub(crate) run: Box<str>,
    /// Another one after each promotion of a replica.
    pub(crate) replication: Box<str>,
}

enum Popped {
    /// Numbers, which are ours from now on; none if the list is empty.
    Numbers(Vec<String>),
    /// The server, or the list, is another one than was named.
    Other(Box<str>),
}

impl Tap {
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        let refused = |problem: redis::RedisError| OpenError::Redis(problem.to_string().into());
        let client = Client::open(&*settings.redis).map_err(refused)?;
        #[cfg(feature = "planted-bugs")]
        let script = if settings.ignores_server { POP_ANYWHERE } else { POP };
        #[cfg(not(feature = "planted-bugs"))]
        let script = POP;
        Ok(Self { client, script, link: None, is_attached: false, known: None })
    }

    /// Takes numbers from the list; none if it is empty, or if none were asked for.
    ///
    /// Invariant: after an error there is no link, so that an answer that comes later finds nobody.
    pub(crate) async fn draw(&mut self, bates: &Bates, count: usize) -> Result<Vec<String>, TapError> {
        // While this waits, the link is not in its place: whoever gives up waiting has dropped it.
        let mut link = match self.link.take() {
            Some(link) => link,
            None => {
                self.is_attached = false;
                connect(&self.client).await?
            }
        };
        let mut why = Box::default();
        for _ in 0..TRIES {
            if !self.is_attached {
                self.attach(bates, &mut link).await?;
            }
            let popped = match &self.known {
                Some(known) if count > 0 => pop(&mut link, self.script, known, count).await?,
                _ => Popped::Numbers(Vec::new()),
            };
            match popped {
                Popped::Numbers(numbers) => {
                    self.link = Some(link);
                    return Ok(numbers);
                }
                Popped::Other(reason) => (self.is_attached, why) = (false, reason),
            }
        }
        Err(TapError::Other(why))
    }

    /// Learns the epoch for the server behind the link.
    async fn attach(&mut self, bates: &Bates, link: &mut MultiplexedConnection) -> Result<(), TapError> {
        let server = server(link).await?;
        match bates.attach(&server).await {
            Ok(list) => self.known = Some(Known { server, list }),
            // Invariant: without Bates, only a server whose memory is the one that the epoch was learned for.
            Err(error)
                if error.is_away() && self.known.as_ref().is_some_and(|known| known.server == server) => {}
            Err(error) => return Err(TapError::Attach(error)),
        }
        self.is_attached = true;
        Ok(())
    }
}

async fn connect(client: &Client) -> Result<MultiplexedConnection, TapError> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let connecting = client.get_multiplexed_async_connection_with_config(&config);
    Ok(timeout(STEP, connecting).await.map_err(|_| TapError::Late("to a connection"))??)
}

/// Which memory the server has that answers.
async fn server(link: &mut MultiplexedConnection) -> Result<Server, TapError> {
    let mut ask = Pipeline::with_capacity(2);
    ask.cmd("INFO").arg("server").cmd("INFO").arg("replication");
    let asked = link.req_packed_commands(&ask, 0, 2);
    let answers = timeout(STEP, asked).await.map_err(|_| TapError::Late("to INFO"))??;
    let field = |at: usize, name: &'static str| {
        let about = answers.get(at).and_then(text).unwrap_or_default();
        let found = about.lines().filter_map(|line| line.split_once(':')).find(|(field, _)| *field == name);
        let value = found.map(|(_, value)| value.trim().into());
        value.ok_or_else(|| TapError::Strange(format!("INFO tells no {name}").into()))
    };
    Ok(Server { run: field(0, "run_id")?, replication: field(1, "master_replid")? })
}

/// Takes numbers, within a time. After an error the connection must not be used: an answer may be on its way.
async fn pop(
    link: &mut MultiplexedConnection,
    script: &str,
    Known { server, list }: &Known,
    count: usize,
) -> Result<Popped, TapError> {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(2).arg(&list.key).arg(marker_key(&list.key));
    command.arg(list.epoch).arg(&*server.run).arg(&*server.replication).arg(count);
    command.arg(&list.store);
    let asked = link.req_packed_command(&command);
    read(timeout(SCRIPT, asked).await.map_err(|_| TapError::Late("in time"))??)
}

fn read(answer: Value) -> Result<Popped, TapError> {
    let strange = |answer: &Value| TapError::Strange(format!("it answers {answer:?}").into());
    let answer = answer.extract_error()?;
    let Value::Array(parts) = &answer else { return Err(strange(&answer)) };
    match (parts.first().and_then(text), parts.get(1)) {
        (Some("popped"), Some(Value::Array(numbers))) => {
            let numbers: Option<Vec<String>> =
                numbers.iter().map(|number| text(number).map(Into::into)).collect();
            numbers.map(Popped::Numbers).ok_or_else(|| strange(&answer))
        }
        (Some("store"), _) => Ok(Popped::Other("another installation of Bates fills it".into())),
        (Some("server"), _) => Ok(Popped::Other("the server is another one".into())),
        (Some("epoch"), Some(epoch)) => {
            Ok(Popped::Other(format!("its epoch is {}", text(epoch).unwrap_or("none")).into()))
        }
        _ => Err(strange(&answer)),
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}
