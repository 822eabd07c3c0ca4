//! `bates serve`: the server.

mod banner;
mod configured;
mod external;
mod id_pools;
mod offered;
mod tls;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bates_core::{Machine, ReleaseReport, Store};
use bates_server::{Defense, Offers, Tls, http, resp};
use bates_sqlite::OpenMode;
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::background::{Background, ticks};
use crate::config::{Config, ConfigArgs, Offer, OpenStore};
use crate::output::{self, Output, count_of};

pub(crate) use external::{open_pools, start_fillers};

/// Idle scopes leave memory after this time.
const EVICTION_PERIOD: Duration = Duration::from_mins(5);

/// A node sees changes of series by other nodes within this time.
const SYNC_PERIOD: Duration = Duration::from_secs(1);

/// Each run that removes records leaves one behind.
const OPERATIONS_PRUNE_PERIOD: Duration = Duration::from_hours(24);

/// How soon a first wrong secret is noted.
const NOTE_PERIOD: Duration = Duration::from_secs(1);

/// In sync periods: five heartbeats within the time after which a node counts as crashed.
const HEARTBEAT_EVERY: u64 = bates_postgres::CRASHED_AFTER.as_secs() / (5 * SYNC_PERIOD.as_secs());

/// Issue numbers over HTTP and the Redis protocol
///
/// Needs no configuration: cursors are kept in the data folder, and the built-in series are document, short, farmer,
/// conversation and counter. On SIGTERM or Ctrl-C the server stops and returns unused numbers to the store.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates serve\n  \
    bates serve --config /etc/bates/bates.yaml\n  \
    bates serve --data /var/lib/bates --new\n  \
    export BATES_SECRET=… BATES_TLS_CERTIFICATE=server.pem BATES_TLS_KEY=server.key\n  \
    bates serve --http 0.0.0.0:8080 --resp off\n\n\
    Then, from another terminal:\n  \
    redis-cli -p 6380 INCR seq:conv_abc123\n  \
    redis-cli -p 6380 LPOP id-pool:PROJ:9012 100\n  \
    curl -X POST 'http://127.0.0.1:8080/v1/series/short/next?count=3'\n  \
    bates next document project=PROJ type=9012 -n 3")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// The listen address for HTTP, or off [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// The listen address for the Redis protocol, or off [default: 127.0.0.1:6380]
    #[arg(long, value_name = "ADDR")]
    resp: Option<String>,

    /// Create the store; refused if there is one. Without any configuration, a first start does so by itself
    #[arg(long)]
    new: bool,
}

impl ServeArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(self.http.as_deref(), self.resp.as_deref())?;
        let mode = match self.new {
            true => OpenMode::New,
            false if config.may_create_store => OpenMode::First,
            false => OpenMode::Existing,
        };
        match config.open_store(mode).await? {
            OpenStore::Folder(store) => {
                if store.is_group_readable() {
                    let risk = "users of its group can read the data folder, and so predict numbers of shuffled series";
                    output::print_note(risk);
                }
                let is_new = store.is_new();
                serve(store, is_new, config, out).await
            }
            OpenStore::Postgres(store) => serve(store, self.new, config, out).await,
        }
    }
}

async fn serve(store: impl Store, is_new: bool, mut config: Config, out: &mut Output) -> Result<()> {
    let found = banner::StoreFound::look_at(&store, is_new).await?;
    let machine = config.open_machine(store).await?;
    external::open_document_sources(&machine, &config)?;
    id_pools::refuse_unadopted(&machine, &config).await?;
    let (http, resp) = (bind("http", config.http).await?, bind("resp", config.resp).await?);
    if http.is_none() && resp.is_none() {
        bail!("http and resp are both off: turn one of them on");
    }
    let tls = config.tls.clone().map(Tls::open).transpose()?.map(Arc::new);
    let stop = stop_signal()?;
    configured::record_change(&machine, &config).await?;
    banner::print(out, &machine, &config, &found, http.as_ref(), resp.as_ref())?;
    let mut tasks = start_background(&machine, &config);
    if let Some(tls) = &tls {
        tasks.endless.spawn(tls::reload(tls.clone()));
    }
    let defense = Arc::new(Defense::new(config.defense.clone()));
    tasks.endless.spawn(print_defense_notes(defense.clone()));
    external::start_relays(&mut tasks, &machine, &config)?;
    external::start_offered_sinks(&mut tasks, &machine, &config);
    start_fillers(&mut tasks, &machine, &config);
    external::note_undeliverable(&machine).await?;
    let http_settings = http::Settings {
        openg2p_is_open: config.openg2p_without_secret,
        hosts: config.hosts,
        sink_offers: names(&config.offered_sinks),
        pool_offers: names(&config.offered_pools),
        tls,
        defense,
        ..http::Settings::new(config.access)
    };
    let stopped_at = listen(&machine, http_settings, http, resp, stop, config.stop_timeout / 2).await;
    tasks.stop().await;
    let closed = machine.close_within(config.stop_timeout.saturating_sub(stopped_at.elapsed())).await;
    output::print_note(&describe_stop(closed));
    Ok(())
}

fn start_background<S: Store>(machine: &Arc<Machine<S>>, config: &Config) -> Background {
    let mut tasks = Background::start(machine, EVICTION_PERIOD, config.retention);
    let apply_tokens = configured::token_reader(machine.clone(), config.access.clone());
    tasks.endless.spawn(sync_series(machine.clone(), apply_tokens));
    if let Some(retention) = config.operations_retention {
        tasks.endless.spawn(prune_operations(machine.clone(), retention));
    }
    if let Some(period) = config.reconcile_period {
        tasks.endless.spawn(reconcile(machine.clone(), period));
    }
    tasks
}

fn names<T>(offers: &BTreeMap<String, Offer<T>>) -> Offers {
    offers.iter().map(|(name, offer)| (name.clone(), offer.offered_to.clone())).collect()
}

fn describe_stop(closed: ReleaseReport) -> String {
    let ReleaseReport { returned, gaps, skipped, .. } = closed;
    let (returned, gaps) = (count_of(returned, "unused number"), count_of(gaps, "gap"));
    let skipped = match skipped {
        0 => String::new(),
        _ => format!(", {} skipped, as after a crash: stop_timeout_s was over", count_of(skipped, "number")),
    };
    format!("stopped: {returned} given back, {gaps} left{skipped}")
}

/// Serves both ports until the signal to stop, and returns when it came. Requests under way may finish within `drain_max`.
async fn listen<S: Store>(
    machine: &Arc<Machine<S>>,
    http_settings: http::Settings,
    http: Option<TcpListener>,
    resp: Option<TcpListener>,
    stop: impl Future<Output = ()>,
    drain_max: Duration,
) -> Instant {
    let (stopping, stopped) = watch::channel(false);
    let resp_settings = resp::Settings {
        tls: http_settings.tls.clone(),
        defense: http_settings.defense.clone(),
        handshake_timeout: http_settings.head_timeout,
        ..resp::Settings::new(http_settings.access.clone())
    };
    let http = async {
        if let Some(listener) = http {
            http::serve(listener, machine.clone(), http_settings, wait_for_stop(stopped.clone())).await;
        }
    };
    let resp = async {
        if let Some(listener) = resp {
            resp::serve(listener, machine.clone(), resp_settings, wait_for_stop(stopped.clone())).await;
        }
    };
    let mut stopped_at = None;
    let drained = async {
        stop.await;
        stopped_at = Some(Instant::now());
        // Fails only if both ports have ended.
        let _ = stopping.send(true);
        tokio::time::sleep(drain_max).await;
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(http, resp) } => {}
        () = drained => {}
    }
    stopped_at.unwrap_or_else(Instant::now)
}

/// Tells the operator of refused secrets, requests and connections, at most once a minute.
async fn print_defense_notes(defense: Arc<Defense>) {
    let mut ticks = ticks(NOTE_PERIOD);
    loop {
        ticks.tick().await;
        if let Some(note) = defense.note() {
            output::print_note(&note);
        }
    }
}

async fn bind(key: &str, address: Option<SocketAddr>) -> Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    Ok(Some(listener.with_context(|| format!("cannot listen on {key} {address}"))?))
}

async fn wait_for_stop(mut stopped: watch::Receiver<bool>) {
    // A dropped sender also means shutdown.
    let _ = stopped.changed().await;
}

async fn reconcile<S: Store>(machine: Arc<Machine<S>>, period: Duration) {
    let mut ticks = ticks(period);
    loop {
        ticks.tick().await;
        if let Err(error) = machine.reconcile(None).await {
            output::print_note(&format!("cannot reconcile: {error}"));
        }
    }
}

async fn prune_operations<S: Store>(machine: Arc<Machine<S>>, retention: Duration) {
    let mut ticks = ticks(OPERATIONS_PRUNE_PERIOD);
    loop {
        ticks.tick().await;
        match machine.prune_operations(retention).await {
            Ok(0) => {}
            Ok(removed) => output::print_note(&format!(
                "{} of the operations log removed after their retention",
                count_of(removed, "record")
            )),
            Err(error) => output::print_note(&format!("cannot prune the operations log: {error}")),
        }
    }
}

/// Applies what other nodes create, change and retire, then calls `synced`, also if the store is away.
pub(crate) async fn sync_series<S: Store>(machine: Arc<Machine<S>>, mut synced: impl FnMut()) {
    let (mut ticks, mut lost) = (ticks(SYNC_PERIOD), None);
    for tick in 0_u64.. {
        ticks.tick().await;
        // A heartbeat: without it, other nodes count the numbers that this node holds in memory as lost.
        if machine.is_shared() && tick % HEARTBEAT_EVERY == 0 {
            let _ = machine.check().await;
        }
        match machine.sync_series().await {
            Ok(changes) => {
                if lost.take().is_some() {
                    output::print_note("the store is available again");
                }
                for error in changes.refused {
                    output::print_note(&format!("cannot apply a change by another node: {error}"));
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
        synced();
    }
}

/// Listens from this call on, so that no signal is lost once the banner is printed.
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
