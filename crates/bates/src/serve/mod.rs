//! `bates serve`: the numbering server.

mod series;

use std::env::VarError;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bates_core::{Closed, Machine, SystemClock};
use bates_server::{Access, resp};
use bates_sqlite::{Opening, SqliteStore};
use clap::Args;
use tokio::net::TcpListener;

use crate::output::{self, Answer, Output, counted};

/// Scopes that nobody asked for in this time leave memory.
const EVICTION_PERIOD: Duration = Duration::from_mins(5);

/// The variable of the environment that holds the secret.
const SECRET: &str = "BATES_SECRET";

/// Hand out numbers over the Redis protocol
///
/// Needs no configuration: cursors are kept in the data folder, and the built-in series are document, short,
/// farmer, conversation and counter. Stops on SIGTERM or Ctrl-C, and then gives unused numbers back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates serve\n  \
    bates serve --data /var/lib/bates --resp 127.0.0.1:6380\n\n\
    Then, from another terminal:\n  \
    redis-cli -p 6380 INCR seq:conv_abc123\n  \
    redis-cli -p 6380 LPOP id-pool:PROJ:9012 100\n  \
    redis-cli -p 6380 LPOP short")]
pub(crate) struct ServeArgs {
    /// The folder of the embedded store; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "bates-data")]
    data: PathBuf,

    /// Where to listen for the Redis protocol; other than loopback only with a secret in `BATES_SECRET`
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6380")]
    resp: SocketAddr,

    /// Begin again with an empty store where one was before and its database is gone
    #[arg(long)]
    new: bool,
}

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Answer> {
    let access = Arc::new(access()?);
    if access.is_open() && !args.resp.ip().is_loopback() {
        bail!(
            "--resp {}: anybody could take numbers there. Set a secret in {SECRET}, or listen on loopback",
            args.resp
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args, access))
}

/// The secret that clients have to show. Never printed, not even a bad one.
fn access() -> anyhow::Result<Access> {
    match std::env::var(SECRET) {
        Ok(secret) if secret.is_empty() => bail!("{SECRET} is empty: give it a secret, or unset it"),
        Ok(secret) => Ok(Access::new(Some(&secret))),
        Err(VarError::NotPresent) => Ok(Access::new(None)),
        Err(VarError::NotUnicode(_)) => bail!("{SECRET} is not UTF-8"),
    }
}

async fn serve(args: &ServeArgs, access: Arc<Access>) -> anyhow::Result<Answer> {
    let opening = if args.new { Opening::New } else { Opening::First };
    let store = Arc::new(SqliteStore::open(&args.data, opening)?);
    let machine = Arc::new(Machine::open(store, series::built_in()?, Arc::new(SystemClock)).await?);
    let listener = TcpListener::bind(args.resp).await.with_context(|| format!("--resp {}", args.resp))?;
    let stop = stop_signal()?;
    greet(&args.data, listener.local_addr()?)?;
    let evicting = tokio::spawn(evict(machine.clone()));
    let settings = resp::Settings::new(access, || jiff::Timestamp::now().into());
    resp::serve(listener, machine.clone(), settings, stop).await?;
    evicting.abort();
    let Closed { returned, gaps, .. } = machine.close().await;
    let (returned, gaps) = (counted(returned, "unused number"), counted(gaps, "gap"));
    output::print_note(&format!("stopped: {returned} given back, {gaps} left"));
    Ok(Answer::Yes)
}

async fn evict(machine: Arc<Machine<Arc<SqliteStore>>>) {
    let mut ticks = tokio::time::interval(EVICTION_PERIOD);
    loop {
        ticks.tick().await;
        machine.evict_idle().await;
    }
}

/// Ready to be stopped before anybody is told that we run.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            // Where Ctrl-C cannot be listened for, SIGTERM remains.
            Ok(()) = tokio::signal::ctrl_c() => {}
        }
    })
}

fn greet(data: &Path, resp: SocketAddr) -> anyhow::Result<()> {
    let mut out = Output::new();
    let port = resp.port();
    out.line(format_args!("bates {} hands out numbers", env!("CARGO_PKG_VERSION")))?;
    out.line(format_args!("  Redis protocol  {resp}"))?;
    out.line(format_args!("  data            {}", data.display()))?;
    out.line(format_args!("try:"))?;
    out.line(format_args!("  redis-cli -p {port} INCR seq:conv_abc123"))?;
    out.line(format_args!("  redis-cli -p {port} LPOP id-pool:PROJ:9012 3"))?;
    out.line(format_args!("  redis-cli -p {port} LPOP short"))?;
    out.flush()
}
