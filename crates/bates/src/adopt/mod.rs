//! `bates adopt`: marks numbers of an earlier system as taken, so that Bates never issues them. Ensures that no node
//! or client holds one of them afterwards.

mod earlier_numbers;

use std::path::PathBuf;

use anyhow::{Result, bail};
use bates_core::{Actor, Machine, PositionRange, ScopeId, Store};
use bates_sqlite::OpenMode;
use clap::Args;

use crate::config::{Config, ConfigArgs, OpenStore};
use crate::floor::empty_pool;
use crate::operator::command_user;
use crate::output::{Output, count_of};
use crate::progress::Progress;
use crate::recall::{RecallArgs, Stage};
use earlier_numbers::{EarlierNumbers, Positions};

/// Adopt numbers that an earlier system issued, so that Bates never issues them
///
/// Each line of the file is one such number. In a CSV file, each row has one, in the first column or in the one that
/// --column names. In a counting series, the cursor of each scope is raised past its highest number; a higher cursor
/// stays. In a shuffled series, each of the numbers is skipped from then on. If a text is not a number of the series,
/// nothing is adopted, unless --skip-others is given. Stop the server of a data folder first. Nodes on PostgreSQL may
/// keep running: they release their numbers of the series, and the command waits for each of them. It refuses if a
/// node does not answer, or if a client holds adopted numbers.
///
/// With --openg2p the numbers are those that the tables of an OpenG2P id-generator list as taken, of one series or of
/// all ID types. Stop the id-generator first: numbers that it issues afterwards are not adopted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates adopt --series document existing.csv\n  \
    bates adopt --series invoice invoices.csv --column invoice_no --skip-others\n  \
    bates adopt --openg2p --openg2p-config config/default.yaml\n  \
    bates adopt --openg2p --series farmer --url postgres://postgres@db/idgenerator")]
pub(crate) struct AdoptArgs {
    /// The file: one number per line, or CSV
    #[arg(required_unless_present = "openg2p")]
    file: Option<PathBuf>,

    /// The series
    #[arg(long, required_unless_present = "openg2p")]
    series: Option<String>,

    /// The column of a CSV file that holds the numbers [default: the first]
    #[arg(long)]
    column: Option<String>,

    /// Read the tables of an OpenG2P id-generator instead of a file
    #[arg(long, conflicts_with_all = ["file", "column"])]
    openg2p: bool,

    /// The database with those tables [default: that of the store]
    #[arg(long, value_name = "URL", requires = "openg2p")]
    url: Option<String>,

    /// Skip texts that are not numbers of the series
    #[arg(long)]
    skip_others: bool,

    /// Go on even if the Redis server of a shared pool is unreachable: its list may hold adopted numbers
    #[arg(long)]
    without_pools: bool,

    #[command(flatten)]
    recall: RecallArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Max positions adopted in one commit.
const COMMIT_MAX: usize = 50_000;

impl AdoptArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        match config.open_store(OpenMode::Existing).await? {
            OpenStore::Folder(store) => adopt(store, config, self, out).await,
            OpenStore::Postgres(store) => adopt(store, config, self, out).await,
        }
    }
}

async fn adopt(store: impl Store, mut config: Config, args: &AdoptArgs, out: &mut Output) -> Result<()> {
    let machine = &*config.open_machine(store).await?;
    // Read everything before anything is written.
    let all = earlier_numbers::read(machine, args, config.store.address()).await?;
    if let Some(earlier) = all.iter().find(|earlier| earlier.unrecognized > 0 && !args.skip_others) {
        let (texts, series) = (count_of(earlier.unrecognized, "text"), earlier.entry.series().name());
        bail!(
            "{} has {texts} that cannot be numbers of series {series:?}: nothing was adopted; --skip-others skips them",
            earlier.source
        );
    }
    for earlier in &all {
        recall(machine, args, earlier, Stage::Before).await?;
    }
    for earlier in &all {
        empty_pools(machine, earlier, args).await?;
        let outcome = if earlier.is_shuffled() {
            adopt_positions(machine, earlier).await?
        } else {
            raise_cursors(machine, earlier).await?
        };
        recall(machine, args, earlier, Stage::After).await?;
        // A filler may have been granted adopted numbers in the meantime.
        empty_pools(machine, earlier, args).await?;
        let numbers = count_of(earlier.count, "number");
        let scopes = count_of(earlier.scopes.len() as u64, "scope");
        let of = if all.len() > 1 { format!("{}: ", earlier.entry.series().name()) } else { String::new() };
        writeln!(out, "{of}{numbers} in {scopes} adopted; {outcome}")?;
    }
    machine.close().await;
    Ok(())
}

async fn recall<S: Store>(
    machine: &Machine<S>,
    args: &AdoptArgs,
    earlier: &EarlierNumbers,
    stage: Stage,
) -> Result<()> {
    let is_adopted = |at: &ScopeId, range: PositionRange| earlier.overlaps(&at.scope, range);
    args.recall.release(machine, earlier.entry.series().name(), stage, is_adopted).await
}

async fn empty_pools<S: Store>(machine: &Machine<S>, of: &EarlierNumbers, args: &AdoptArgs) -> Result<()> {
    for scope in of.scopes.keys() {
        empty_pool(machine, &of.entry, scope, args.without_pools).await?;
    }
    Ok(())
}

async fn raise_cursors<S: Store>(machine: &Machine<S>, earlier: &EarlierNumbers) -> Result<String> {
    let (user, mut raised) = (command_user(), 0);
    let actor = Actor::command(&user);
    for (scope, Positions { highest, .. }) in &earlier.scopes {
        let next = machine.raise_scope_floor(&earlier.entry, scope, highest + 1, actor).await?;
        raised += u64::from(next == highest + 1);
    }
    Ok(format!("{} set just past them", count_of(raised, "cursor")))
}

/// Idempotent: after an interruption the command is run again.
async fn adopt_positions<S: Store>(machine: &Machine<S>, earlier: &EarlierNumbers) -> Result<String> {
    let (user, mut granted, mut done) = (command_user(), 0, 0);
    let actor = Actor::command(&user);
    let mut progress = Progress::new("numbers", earlier.count);
    for (scope, Positions { each, .. }) in &earlier.scopes {
        for positions in each.chunks(COMMIT_MAX) {
            granted += machine.adopt_positions(&earlier.entry, scope, positions.to_vec(), actor).await?;
            done += positions.len() as u64;
            progress.show(done, done);
        }
    }
    progress.end();
    let outcome = "each is skipped from now on";
    if granted == 0 {
        return Ok(outcome.to_owned());
    }
    let were = if granted == 1 { "was" } else { "were" };
    Ok(format!("{outcome}; {granted} of them {were} granted before, so Bates may have issued them already"))
}
