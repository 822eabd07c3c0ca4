//! `bates floor --all`: raises every cursor of a store that lost commits, and lets it issue again.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bates_core::{Actor, FloorPlan, OperationStore as _, Store};
use bates_sqlite::OpenMode;
use clap::Args;

use crate::config::{Config, OpenStore, StoreLocation};
use crate::floor::{loss_accepted, raise_past_pools};
use crate::operator::command_user;
use crate::output::{Answer, Output, count_of, group_digits, print_note, print_table};
use crate::progress::Progress;

#[derive(Debug, Args)]
pub(crate) struct AllArgs {
    /// Raise every cursor of a restored store, show the plan first, and let the store issue again
    #[arg(long, requires = "by", conflicts_with_all = ["series", "date", "accept_timeline", "accept_loss"])]
    all: bool,

    /// With --all: by how many positions, more than may have been issued in any scope since the backup
    #[arg(long, value_name = "COUNT", requires = "all", value_parser = clap::value_parser!(u64).range(1..=1 << 52))]
    by: Option<u64>,

    /// With --all: show the plan, and change nothing
    #[arg(long, requires = "all")]
    dry_run: bool,
}

impl AllArgs {
    /// `None` without --all.
    pub(crate) fn raise(&self, without_pools: bool) -> Option<RaiseAll> {
        let by = self.by.filter(|_| self.all)?;
        Some(RaiseAll { by, is_dry_run: self.dry_run, without_pools })
    }
}

pub(crate) struct RaiseAll {
    by: u64,
    is_dry_run: bool,
    without_pools: bool,
}

impl RaiseAll {
    pub(crate) async fn run(&self, config: Config, out: &mut Output) -> Result<Answer> {
        if let StoreLocation::Postgres(..) = &config.store
            && config.open_store(OpenMode::Existing).await.is_ok()
        {
            bail!(
                "{} issues numbers: --all is for a store that stopped, because the database was restored or lost \
                 commits. Raise the cursor of one scope with `bates floor SERIES … POSITION`",
                config.store
            );
        }
        match config.open_store(OpenMode::Stopped).await? {
            OpenStore::Folder(store) => {
                let store = Arc::new(store);
                self.raise(store.clone(), config, out).await?;
                if !self.is_dry_run && store.lacks_commits() {
                    store.append_operation(loss_accepted("missing commits")).await?;
                    store.accept_loss()?;
                    writeln!(out, "the store issues again")?;
                }
            }
            OpenStore::Postgres(store) => {
                let store = Arc::new(store);
                self.raise(store.clone(), config, out).await?;
                if !self.is_dry_run {
                    let timeline = store.accept(Some(loss_accepted("timeline"))).await?;
                    writeln!(out, "timeline {timeline} is accepted: nodes issue again")?;
                }
            }
        }
        Ok(Answer::Yes)
    }

    async fn raise(&self, store: Arc<impl Store>, mut config: Config, out: &mut Output) -> Result<()> {
        let machine = config.open_machine_of(store).await?;
        let plans = machine.plan_floors(self.by).await?;
        print_plan(out, &plans, self.by)?;
        if self.is_dry_run {
            return writeln!(out, "nothing was changed");
        }
        out.flush()?;
        raise_past_pools(&machine, self.without_pools).await?;
        let scopes = plans.iter().map(|plan| plan.scopes).sum();
        let (mut progress, mut done) = (Progress::new("scopes", scopes), 0);
        let user = command_user();
        let raised = machine.raise_all_floors(self.by, Actor::command(&user), |scopes| {
            done += scopes;
            progress.show(done, done);
        });
        raised
            .await
            .context("some cursors are raised, and the store issues nothing yet: run the command again")?;
        progress.end();
        machine.close().await;
        writeln!(out, "raised {} by {}", count_of(scopes, "cursor"), group_digits(self.by))
    }
}

fn print_plan(out: &mut Output, plans: &[FloorPlan], by: u64) -> Result<()> {
    let titles = ["SERIES", "SCOPES", "HIGHEST CURSOR", "RAISED TO", "UNKNOWN SCOPES FROM", "THEN EXHAUSTED"];
    let mut rows = vec![titles.map(str::to_owned)];
    for FloorPlan { series, scopes, highest, unknown_from, exhausted } in plans {
        let raised = highest.checked_add(by).filter(|_| *scopes > 0);
        rows.push([
            series.to_string(),
            group_digits(*scopes),
            group_digits(*highest),
            raised.map_or("-".to_owned(), group_digits),
            group_digits(*unknown_from),
            group_digits(*exhausted),
        ]);
    }
    print_table(out, &rows)?;
    let exhausted = plans.iter().map(|plan| plan.exhausted).sum();
    if exhausted > 0 {
        print_note(&format!("{} would have no number left", count_of(exhausted, "scope")));
    }
    Ok(())
}
