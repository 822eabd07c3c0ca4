//! `bates fill`: fills shared pools once, or keeps them full in a process of its own.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use bates_core::{Actor, FillAmount, FillOutcome, Machine, PoolStatus, ScopeParams, SeriesEntry, Store};
use bates_sqlite::OpenMode;
use clap::Args;

use crate::background::Background;
use crate::config::{Config, ConfigArgs, OpenStore};
use crate::operator::command_user;
use crate::output::{self, Answer, Output, count_of};
use crate::progress::Progress;
use crate::remote::server::ServerArgs;
use crate::scope;
use crate::serve::{start_fillers, stop_signal, sync_series};

const POLL_PERIOD: Duration = Duration::from_millis(200);
const POLLS_MAX: usize = 50;

/// Fill shared pools in Redis
///
/// Fills the pool of one scope if it is low. From then on, every server node and every `bates fill --watch` keeps
/// that pool full. With --watch, keeps all pools of the configuration full until it is stopped. The server of a data
/// folder fills its pools itself: ask it with --server.
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
    server_args: ServerArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

impl FillArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        if self.server {
            return self.ask_server(out).await;
        }
        let config = self.config.load(None, None)?;
        if config.pools.is_empty() && config.offered_pools.is_empty() {
            bail!("no series of the configuration has a pool, and it offers none");
        }
        let opened = config.open_store(OpenMode::Existing).await.inspect_err(|error| {
            if let Some(bates_sqlite::OpenError::InUse(_)) = error.downcast_ref() {
                output::print_note("a running server fills the pools of its folder: ask it with --server");
            }
        });
        match opened? {
            OpenStore::Folder(store) => self.fill(store, config, out).await,
            OpenStore::Postgres(store) => self.fill(store, config, out).await,
        }
    }

    async fn fill(&self, store: impl Store, mut config: Config, out: &mut Output) -> Result<Answer> {
        let machine = config.open_machine(store).await?;
        let Some(series) = &self.series else {
            let stop = stop_signal()?;
            let mut tasks = Background::default();
            tasks.endless.spawn(sync_series(machine.clone(), || {}));
            start_fillers(&mut tasks, &machine, &config);
            let mut names: Vec<&str> = config.pools.iter().map(|pool| pool.series.as_str()).collect();
            names.extend(config.offered_pools.keys().map(|_| "series at run time").take(1));
            output::print_note(&format!("keeping the pools of {} full", names.join(", ")));
            stop.await;
            tasks.stop().await;
            machine.close().await;
            return Ok(Answer::Yes);
        };
        let Some(entry) = machine.series(series) else { bail!("unknown series {series:?}") };
        let answer = self.fill_scope(&machine, &entry, out).await;
        machine.close().await;
        answer
    }

    async fn fill_scope<S: Store>(
        &self,
        machine: &Machine<S>,
        entry: &SeriesEntry,
        out: &mut Output,
    ) -> Result<Answer> {
        let params = ScopeParams { parameters: &scope::pairs(&self.parameters)?, date: None };
        let pool = machine.request_pool(entry, params, Actor::command(&command_user())).await?;
        let Some(pool_set) = machine.pool_set(entry.series().name()) else { bail!("the series has no pool") };
        let (FillAmount::UpTo(size) | FillAmount::Batch(size)) = pool_set.settings().amount;
        let progress = Mutex::new(Progress::new("numbers", size));
        let progress = || progress.lock().unwrap_or_else(PoisonError::into_inner);
        let PoolStatus { scope_id, key, .. } = pool;
        let filled = machine.fill_pool(entry, &scope_id.scope, &|count| progress().show(count, count)).await;
        progress().end();
        match filled? {
            FillOutcome::Done { pushed: 0, .. } => writeln!(out, "{key} is not low: nothing was pushed")?,
            FillOutcome::Done { pushed, renewed } => {
                let renewed = if renewed { ", as a new list" } else { "" };
                writeln!(out, "{} pushed to {key}{renewed}", count_of(pushed, "number"))?;
            }
            FillOutcome::Skipped => {
                writeln!(out, "{key} is being filled by another process")?;
                return Ok(Answer::No);
            }
        }
        Ok(Answer::Yes)
    }

    async fn ask_server(&self, out: &mut Output) -> Result<Answer> {
        let name = self.series.as_deref().unwrap_or_default();
        let series = scope::series(&self.server_args.client()?, name, &self.parameters, None)?;
        let key = series.keep_pool().await?.key;
        for _ in 0..POLLS_MAX {
            let pools = series.pools().await?;
            if let Some(level @ 1..) = pools.iter().find(|pool| pool.key == key).and_then(|pool| pool.level) {
                writeln!(out, "{key} holds {}", count_of(level, "number"))?;
                return Ok(Answer::Yes);
            }
            tokio::time::sleep(POLL_PERIOD).await;
        }
        writeln!(out, "{key} is not filled yet: see the log of the server")?;
        Ok(Answer::No)
    }
}
