//! `bates adopt`: never issue numbers that an earlier system gave out. Owns that no node or client holds one afterwards.

mod earlier;

use std::path::PathBuf;

use anyhow::{Result, bail};
use bates_core::{Lease, Machine, Place, Store};
use bates_sqlite::Opening;
use clap::Args;

use crate::config::{Config, ConfigArgs, OpenStore};
use crate::floor::emptied;
use crate::output::{Output, counted};
use crate::progress::Progress;
use crate::recall::{RecallArgs, Stage};
use earlier::{Earlier, Positions};

/// Never issue numbers that an earlier system already gave out
///
/// Each line of the file is such a number; of a CSV file, each row has one in the column that --column names, or in the
/// first. In a series that counts, the cursor of each scope is raised past its highest; one that is higher stays. In a
/// shuffled series each of them is set aside and passed over. Nothing is written if a text is no number of the series,
/// unless --skip-others. The server of a data folder must be stopped. Nodes on PostgreSQL may run: they give up what they
/// hold of the series, and the command waits until each of them has. It refuses where a node does not answer, or a client
/// holds numbers that are adopted.
///
/// With --openg2p the numbers are those that the tables of an OpenG2P id-generator say were taken, of one series or of all
/// ID types. Stop the id-generator first: what it gives out afterwards would not be adopted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates adopt --series document existing.csv\n  \
    bates adopt --series invoice invoices.csv --column invoice_no --skip-others\n  \
    bates adopt --openg2p --openg2p-config config/default.yaml\n  \
    bates adopt --openg2p --series farmer --url postgres://postgres@db/idgenerator")]
pub(crate) struct AdoptArgs {
    /// The file
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

    /// Pass over texts that are no numbers of the series
    #[arg(long)]
    skip_others: bool,

    /// Go on although the Redis server of a shared pool cannot be asked: its list may give adopted numbers
    #[arg(long)]
    without_pools: bool,

    #[command(flatten)]
    recall: RecallArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

const COMMIT_MAX: usize = 50_000;

impl AdoptArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        // May be the first command on a new store.
        match config.store.open(Opening::First).await? {
            OpenStore::Folder(store) => adopt(store, config, self, out).await,
            OpenStore::Postgres(store) => adopt(store, config, self, out).await,
        }
    }
}

async fn adopt(store: impl Store, mut config: Config, args: &AdoptArgs, out: &mut Output) -> Result<()> {
    let machine = &*config.machine(store).await?;
    // Read everything before anything is written.
    let all = earlier::read(machine, args, config.store.address()).await?;
    if let Some(earlier) = all.iter().find(|earlier| earlier.strangers > 0 && !args.skip_others) {
        let (strangers, series) = (counted(earlier.strangers, "text"), earlier.entry.series().name());
        bail!(
            "{strangers} in {} that cannot be a number of series {series:?}: nothing is adopted; --skip-others passes over them",
            earlier.from
        );
    }
    for earlier in &all {
        released(machine, args, earlier, Stage::Before).await?;
    }
    for earlier in &all {
        empty_pools(machine, earlier, args).await?;
        let is_shuffled = earlier.is_shuffled();
        let told =
            if is_shuffled { set_aside(machine, earlier).await? } else { raise(machine, earlier).await? };
        released(machine, args, earlier, Stage::After).await?;
        // A filler may have been granted adopted numbers meanwhile.
        empty_pools(machine, earlier, args).await?;
        let numbers = counted(earlier.numbers, "number");
        let scopes = counted(earlier.scopes.len() as u64, "scope");
        let of = if all.len() > 1 { format!("{}: ", earlier.entry.series().name()) } else { String::new() };
        writeln!(out, "{of}{numbers} in {scopes} adopted; {told}")?;
    }
    machine.close().await;
    Ok(())
}

async fn released<S: Store>(
    machine: &Machine<S>,
    args: &AdoptArgs,
    earlier: &Earlier,
    stage: Stage,
) -> Result<()> {
    let is_adopted = |at: &Place, range: Lease| earlier.has_any_of(&at.scope, range);
    args.recall.release(machine, earlier.entry.series().name(), stage, is_adopted).await
}

async fn empty_pools<S: Store>(machine: &Machine<S>, earlier: &Earlier, args: &AdoptArgs) -> Result<()> {
    for scope in earlier.scopes.keys() {
        emptied(machine, &earlier.entry, scope, args.without_pools).await?;
    }
    Ok(())
}

async fn raise<S: Store>(machine: &Machine<S>, earlier: &Earlier) -> Result<String> {
    let mut raised = 0;
    for (scope, Positions { highest, .. }) in &earlier.scopes {
        raised += u64::from(machine.raise_floor_of(&earlier.entry, scope, highest + 1).await? == highest + 1);
    }
    Ok(format!("{} past them, no number below is issued", counted(raised, "cursor")))
}

/// Idempotent: after an interruption the command is run again.
async fn set_aside<S: Store>(machine: &Machine<S>, earlier: &Earlier) -> Result<String> {
    let (mut passed, mut done) = (0, 0);
    let mut progress = Progress::new("numbers", earlier.numbers);
    for (scope, Positions { each, .. }) in &earlier.scopes {
        for positions in each.chunks(COMMIT_MAX) {
            passed += machine.set_aside(&earlier.entry, scope, positions.to_vec()).await?;
            done += positions.len() as u64;
            progress.show(done, done);
        }
    }
    progress.end();
    let told = "each is passed over from now on";
    let were = if passed == 1 { "was" } else { "were" };
    Ok(match passed {
        0 => told.to_owned(),
        _ => format!("{told}. {passed} of them {were} granted before: Bates may have issued them itself"),
    })
}
