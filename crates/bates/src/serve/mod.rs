//! `bates serve`: the numbering server.

mod id_pools;
mod outside;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bates_core::{Closed, Entry, Machine, Store};
use bates_server::{http, resp};
use bates_sqlite::Opening;
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::background::{Background, ticks};
use crate::config::{Config, ConfigArgs, OpenStore, address_or_off};
use crate::output::{self, Output, counted};

pub(crate) use outside::{know_pools, start_fillers};

/// Idle scopes leave memory after this time.
const EVICTION_PERIOD: Duration = Duration::from_mins(5);

/// A node sees changes of series by other nodes within this time.
const FOLLOWING_PERIOD: Duration = Duration::from_secs(1);

/// In following periods: five heartbeats within the time after which a node counts as crashed.
const HEARD_EVERY: u64 = bates_postgres::CRASHED_AFTER.as_secs() / (5 * FOLLOWING_PERIOD.as_secs());

/// Hand out numbers over HTTP and the Redis protocol
///
/// Needs no configuration: cursors are kept in the data folder, and the built-in series are document, short,
/// farmer, conversation and counter. Stops on SIGTERM or Ctrl-C, and then gives unused numbers back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates serve\n  \
    bates serve --config /etc/bates.yaml --data /var/lib/bates\n  \
    BATES_SECRET=… bates serve --http 0.0.0.0:8080 --resp off\n\n\
    Then, from another terminal:\n  \
    redis-cli -p 6380 INCR seq:conv_abc123\n  \
    redis-cli -p 6380 LPOP id-pool:PROJ:9012 100\n  \
    curl -X POST 'http://127.0.0.1:8080/v1/series/short/next?count=3'\n  \
    bates next document project=PROJ type=9012 -n 3")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Where to listen for HTTP, or off [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// Where to listen for the Redis protocol, or off [default: 127.0.0.1:6380]
    #[arg(long, value_name = "ADDR")]
    resp: Option<String>,

    /// Begin again with an empty store where one was before and its database is gone; on PostgreSQL, make a store
    /// where the database has none
    #[arg(long)]
    new: bool,
}

impl ServeArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(self.http.as_deref(), self.resp.as_deref())?;
        let opening = if self.new { Opening::New } else { Opening::First };
        match config.store.open(opening).await? {
            OpenStore::Folder(store) => serve(store, config, out).await,
            OpenStore::Postgres(store) => serve(store, config, out).await,
        }
    }
}

async fn serve(store: impl Store, mut config: Config, out: &mut Output) -> Result<()> {
    let machine = config.machine(store).await?;
    outside::know_documents(&machine, &config)?;
    id_pools::refuse_unadopted(&machine, &config).await?;
    let (http, resp) = (bind("http", config.http).await?, bind("resp", config.resp).await?);
    if http.is_none() && resp.is_none() {
        bail!("http and resp are both off: nobody could ask for a number");
    }
    let stop = stop_signal()?;
    greet(out, &machine, &config, http.as_ref(), resp.as_ref())?;
    let mut tasks = Background::start(&machine, EVICTION_PERIOD, config.retention);
    tasks.endless.spawn(follow(machine.clone()));
    if let Some(period) = config.reconcile_every {
        tasks.endless.spawn(reconcile(machine.clone(), period));
    }
    outside::start_relays(&mut tasks, &machine, &config)?;
    start_fillers(&mut tasks, &machine, &config.pools);
    outside::tell_undeliverable(&machine).await?;
    let over_http = http::Settings {
        openg2p_is_open: config.openg2p_is_open,
        ..http::Settings::new(Arc::new(config.access))
    };
    listen(&machine, over_http, http, resp, stop).await;
    tasks.stop().await;
    let Closed { returned, gaps, .. } = machine.close().await;
    let (returned, gaps) = (counted(returned, "unused number"), counted(gaps, "gap"));
    output::print_note(&format!("stopped: {returned} given back, {gaps} left"));
    Ok(())
}

/// Says where the server listens, and lines to try that its series can answer.
fn greet<S: Store>(
    out: &mut Output,
    machine: &Machine<S>,
    config: &Config,
    http: Option<&TcpListener>,
    resp: Option<&TcpListener>,
) -> Result<()> {
    let address = |listener: Option<&TcpListener>| listener.map(TcpListener::local_addr).transpose();
    let (http, resp) = (address(http)?, address(resp)?);
    let file = config.file.as_ref().map_or("built in".into(), |file| file.display().to_string());
    writeln!(out, "bates {} hands out numbers", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "  HTTP            {}", address_or_off(http))?;
    writeln!(out, "  Redis protocol  {}", address_or_off(resp))?;
    writeln!(out, "  data            {}", config.store)?;
    writeln!(out, "  configuration   {file}")?;
    writeln!(out, "try:")?;
    // HTTP shows the series with the fewest parameters, RESP those with keys.
    let (registry, is_open) = (machine.registry(), config.access.is_open());
    let simple = registry.entries().min_by_key(|entry| entry.parameters().count());
    let over_http = http.zip(simple).map(|(http, entry)| by_http(entry, http, is_open));
    let keyed = registry.entries().filter_map(|entry| by_key(entry, resp?, is_open));
    for line in over_http.into_iter().chain(keyed).take(3) {
        writeln!(out, "  {line}")?;
    }
    out.flush()
}

fn by_http(entry: &Entry, http: SocketAddr, is_open: bool) -> String {
    let header = if is_open { "" } else { " -H \"Authorization: Bearer $BATES_SECRET\"" };
    let scope: String = entry.parameters().flat_map(|name| ["&", name, "=", "X"]).collect();
    let name = entry.series().name();
    format!("curl -X POST{header} 'http://{http}/v1/series/{name}/next?count=3{scope}'")
}

fn by_key(entry: &Entry, resp: SocketAddr, is_open: bool) -> Option<String> {
    let password = if is_open { "" } else { " -a \"$BATES_SECRET\"" };
    let key = entry.key()?.to_string();
    let key = entry.parameters().fold(key, |key, name| key.replace(&format!("{{{name}}}"), "X"));
    let (command, count) = if entry.counts_plainly() { ("INCR", "") } else { ("LPOP", " 3") };
    Some(format!("redis-cli -p {}{password} {command} {key}{count}", resp.port()))
}

/// Serves both ports until the signal to stop; requests under way finish.
async fn listen<S: Store>(
    machine: &Arc<Machine<S>>,
    over_http: http::Settings,
    http: Option<TcpListener>,
    resp: Option<TcpListener>,
    stop: impl Future<Output = ()>,
) {
    let (stopping, stopped) = watch::channel(false);
    let over_resp = resp::Settings::new(over_http.access.clone());
    let http = async {
        if let Some(listener) = http {
            http::serve(listener, machine.clone(), over_http, told(stopped.clone())).await;
        }
    };
    let resp = async {
        if let Some(listener) = resp {
            resp::serve(listener, machine.clone(), over_resp, told(stopped.clone())).await;
        }
    };
    let stop = async {
        stop.await;
        // Fails only if both ports have ended.
        let _ = stopping.send(true);
    };
    tokio::join!(http, resp, stop);
}

async fn bind(key: &str, address: Option<SocketAddr>) -> Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    Ok(Some(listener.with_context(|| format!("cannot listen on {key} {address}"))?))
}

async fn told(mut stopped: watch::Receiver<bool>) {
    // A dropped sender also means shutdown.
    let _ = stopped.changed().await;
}

async fn reconcile<S: Store>(machine: Arc<Machine<S>>, period: Duration) {
    let mut ticks = ticks(period);
    loop {
        ticks.tick().await;
        if let Err(error) = machine.reconcile(None).await {
            output::print_note(&format!("gaps could not be looked for: {error}"));
        }
    }
}

/// Follows series that other nodes create, change and retire.
pub(crate) async fn follow<S: Store>(machine: Arc<Machine<S>>) {
    let (mut ticks, mut lost) = (ticks(FOLLOWING_PERIOD), None);
    for tick in 0_u64.. {
        ticks.tick().await;
        // A heartbeat: without it, other nodes would take what this node holds in memory for lost.
        if machine.is_shared() && tick % HEARD_EVERY == 0 {
            let _ = machine.check().await;
        }
        match machine.follow().await {
            Ok(followed) => {
                if lost.take().is_some() {
                    output::print_note("the store can be used again");
                }
                for error in followed.refused {
                    output::print_note(&format!("cannot follow another node: {error}"));
                }
            }
            Err(error) => {
                let error = error.to_string();
                if lost.as_ref() != Some(&error) {
                    output::print_note(&error);
                }
                lost = Some(error);
            }
        }
    }
}

/// Listens from the call on, so that no signal is lost after the server has printed that it runs.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            // If Ctrl-C cannot be handled, SIGTERM remains.
            Ok(()) = tokio::signal::ctrl_c() => {}
        }
    })
}
