//! `bates fill`: shared pools filled by hand, or kept full by a process that does nothing else.

use std::time::Duration;

use anyhow::bail;
use bates_client::Client;
use bates_core::{Amount, Entry, Filled, Machine, ScopeName, Store};
use bates_sqlite::Opening;
use clap::Args;
use tokio::task::JoinSet;

use crate::ask::ServerArgs;
use crate::config::{Config, ConfigArgs};
use crate::output::{self, Answer, Output, grouped};
use crate::progress::Progress;
use crate::scope;
use crate::serve::{Fillers, follow, stop_signal};
use crate::store::{self, OpenStore, StoreRequest};

/// How often a server is asked how far it is, and how many times.
const ASK_EVERY: Duration = Duration::from_millis(200);
const ASKS_MAX: usize = 50;

/// Fill shared pools in Redis
///
/// Fills the pool of one scope, if it is low, and keeps it from then on: every server node, and every `bates fill
/// --watch`, sees to it. With --watch, keeps all pools of the configuration full until it is stopped. On a data folder
/// the server does so itself: ask it with --server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates fill document project=PROJ type=9012\n  \
    bates fill short --server\n  \
    bates fill --watch --config /etc/bates.yaml")]
pub(crate) struct FillArgs {
    /// The series
    #[arg(required_unless_present = "watch")]
    series: Option<String>,

    /// The parameters of the scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// Keep all pools full until stopped
    #[arg(long, conflicts_with_all = ["series", "server"])]
    watch: bool,

    /// Ask the running server at --url instead of opening the store
    #[arg(long)]
    server: bool,

    #[command(flatten)]
    at: ServerArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

pub(crate) fn run(args: &FillArgs) -> anyhow::Result<Answer> {
    if args.server {
        return args.at.ask(async |client| ask(args, client).await);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(open_and_fill(args))
}

async fn open_and_fill(args: &FillArgs) -> anyhow::Result<Answer> {
    let config = args.config.load(None, None)?;
    if config.pools.is_empty() {
        bail!("no series of the configuration has a pool");
    }
    let request = StoreRequest { at: &config.store, opening: Opening::First };
    let opened = request.open().await.inspect_err(|error| {
        if let Some(bates_sqlite::OpenError::InUse(_)) = error.downcast_ref() {
            output::print_note("a running server fills the pools of its folder itself: ask it with --server");
        }
    });
    match opened? {
        OpenStore::Folder(store) => fill(store, config, args).await,
        OpenStore::Postgres(store) => fill(store, config, args).await,
    }
}

async fn fill(store: impl Store, mut config: Config, args: &FillArgs) -> anyhow::Result<Answer> {
    let machine = store::machine(store, &mut config).await?;
    let Some(series) = &args.series else {
        let stop = stop_signal()?;
        let mut following = JoinSet::new();
        following.spawn(follow(machine.clone()));
        let fillers = Fillers::start(&machine, &config.pools);
        let names: Vec<&str> = config.pools.iter().map(|pool| pool.series.as_str()).collect();
        output::print_note(&format!("keeping the pools of {} full", names.join(", ")));
        stop.await;
        fillers.stop().await;
        machine.close().await;
        return Ok(Answer::Yes);
    };
    let Some(entry) = machine.named(series) else { bail!("there is no series {series:?}") };
    let answer = fill_one(&machine, &entry, args).await;
    machine.close().await;
    answer
}

async fn fill_one<S: Store>(machine: &Machine<S>, entry: &Entry, args: &FillArgs) -> anyhow::Result<Answer> {
    let parameters = scope::pairs(&args.parameters)?;
    let name = ScopeName { parameters: &parameters, date: None };
    let pool = machine.ask_for_pool(entry, name).await?;
    let Some(kept) = machine.kept(entry.series().name()) else { bail!("the series has no pool") };
    let (Amount::UpTo(size) | Amount::Batch(size)) = kept.settings().amount;
    let progress = std::sync::Mutex::new(Progress::new("numbers", size));
    let show = |pushed: u64| {
        if let Ok(mut progress) = progress.lock() {
            progress.show(pushed, pushed);
        }
    };
    let filled = machine.fill(entry, &pool.place.scope, &show).await;
    if let Ok(progress) = progress.lock() {
        progress.end();
    }
    let mut out = Output::new();
    let answer = match filled? {
        Filled::Done { pushed: 0, .. } => {
            out.line(format_args!("{} is not low: nothing was pushed", pool.key))?;
            Answer::Yes
        }
        Filled::Done { pushed, renewed } => {
            let renewed = if renewed { ", begun anew" } else { "" };
            out.line(format_args!("{} pushed to {}{renewed}", grouped_numbers(pushed), pool.key))?;
            Answer::Yes
        }
        Filled::Elsewhere => {
            out.line(format_args!("{} is being filled by another process", pool.key))?;
            Answer::No
        }
    };
    out.flush()?;
    Ok(answer)
}

fn grouped_numbers(count: u64) -> String {
    format!("{} {}", grouped(count), if count == 1 { "number" } else { "numbers" })
}

/// Has the server keep a pool, and waits until it holds something.
async fn ask(args: &FillArgs, client: Client) -> anyhow::Result<Answer> {
    let name = args.series.as_deref().unwrap_or_default();
    let series = scope::series(&client, name, &args.parameters, None)?;
    let key = series.keep_pool().await?.key;
    let mut out = Output::new();
    for _ in 0..ASKS_MAX {
        let pools = series.pools().await?;
        if let Some(level @ 1..) = pools.iter().find(|pool| pool.key == key).and_then(|pool| pool.level) {
            out.line(format_args!("{key} holds {}", grouped_numbers(level)))?;
            out.flush()?;
            return Ok(Answer::Yes);
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
    out.line(format_args!("{key} is not filled yet: the log of the server says why"))?;
    out.flush()?;
    Ok(Answer::No)
}
