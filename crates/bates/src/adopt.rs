//! `bates adopt`: numbers that an earlier system gave out are never issued. Owns that nobody issues meanwhile.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bates_core::{Entry, Machine, Pools, ScopeKey, Store, SystemClock};
use bates_postgres::{Pause, PostgresStore};
use bates_server::series::Description;
use bates_sqlite::SqliteStore;
use clap::Args;

use crate::config::{Config, ConfigArgs, StoreAt};
use crate::floor::emptied;
use crate::output::{self, Answer, Output, counted};
use crate::progress::Progress;
use crate::serve::know_pools;

/// Nodes look every second whether they may go on; what they held is given up by then.
const NODES_STOP_WITHIN: Duration = Duration::from_secs(3);

/// Texts that are shown of those that are no numbers.
const STRANGERS_SHOWN: usize = 5;

/// Never issue numbers that an earlier system already gave out
///
/// Each line of the file is such a number; of a CSV file, each row has one in the column that --column names, or in the
/// first. In a series that counts, the cursor of each scope is raised past its highest; one that is higher stays. In a
/// shuffled series each of them is set aside and passed over. Nothing is written if a text is no number of the series,
/// unless --skip-others. The server of a data folder must be stopped; nodes on PostgreSQL stop issuing by themselves
/// meanwhile and give up what they hold.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates adopt --series document existing.csv\n  \
    bates adopt --series invoice invoices.csv --column invoice_no --skip-others")]
pub(crate) struct AdoptArgs {
    /// The file
    file: PathBuf,

    /// The series
    #[arg(long)]
    series: String,

    /// The column of a CSV file that holds the numbers [default: the first]
    #[arg(long)]
    column: Option<String>,

    /// Pass over texts that are no numbers of the series
    #[arg(long)]
    skip_others: bool,

    /// Go on although the Redis server of a shared pool cannot be asked: its list may give adopted numbers
    #[arg(long)]
    without_pools: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Positions that are set aside in one commit.
const COMMIT_MAX: usize = 50_000;

/// The numbers of the earlier system, and how many texts were none.
struct Earlier {
    scopes: BTreeMap<ScopeKey, Positions>,
    numbers: u64,
    strangers: u64,
    is_shuffled: bool,
}

/// What has to be known of the numbers of a scope.
#[derive(Default)]
struct Positions {
    highest: u64,
    /// In a shuffled series each of them.
    each: Vec<u64>,
}

pub(crate) fn run(args: &AdoptArgs) -> anyhow::Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(open_and_adopt(args))
}

async fn open_and_adopt(args: &AdoptArgs) -> anyhow::Result<Answer> {
    let config = args.config.load(None, None)?;
    match &config.store {
        StoreAt::Folder(path) => {
            // The first command of whoever comes from another system.
            let store = SqliteStore::open(path, bates_sqlite::Opening::First)?;
            let machine = Machine::open(store, config.series, Arc::new(SystemClock)).await?;
            know_pools(&machine, &config.pools)?;
            adopt(&machine, args, async || Ok(())).await
        }
        StoreAt::Postgres(address, settings) => {
            let store =
                Arc::new(PostgresStore::open(address, *settings, bates_postgres::Opening::Existing).await?);
            let Config { series, pools, .. } = config;
            let machine = Machine::open(store.clone(), series, Arc::new(SystemClock)).await?;
            know_pools(&machine, &pools)?;
            let pause = Pause::new("numbers of an earlier system are being adopted");
            let begin = async || {
                store.pause(&pause).await?;
                tokio::time::sleep(NODES_STOP_WITHIN).await;
                anyhow::Ok(())
            };
            let adopted = adopt(&machine, args, begin).await;
            // Whatever came of it: nothing was lowered.
            let resumed = store.resume(&pause).await;
            let answer = adopted?;
            resumed?;
            Ok(answer)
        }
    }
}

async fn adopt<S: Pools>(
    machine: &Machine<S>,
    args: &AdoptArgs,
    pause: impl AsyncFnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Answer> {
    machine.restore(Description::read_spec).await?;
    let Some(entry) = machine.named(&args.series) else { bail!("there is no series {:?}", args.series) };
    let earlier = read(args, &entry)?;
    if earlier.strangers > 0 && !args.skip_others {
        let strangers = counted(earlier.strangers, "text");
        bail!(
            "{strangers} in {} that cannot be a number of series {:?}: nothing is adopted; --skip-others passes over them",
            args.file.display(),
            args.series
        );
    }
    pause().await?;
    for scope in earlier.scopes.keys() {
        emptied(machine, &entry, scope, args.without_pools).await?;
    }
    let told = if earlier.is_shuffled {
        set_aside(machine, &entry, &earlier).await?
    } else {
        raise(machine, &entry, &earlier).await?
    };
    machine.close().await;
    let (numbers, scopes) =
        (counted(earlier.numbers, "number"), counted(earlier.scopes.len() as u64, "scope"));
    let mut out = Output::new();
    out.line(format_args!("{numbers} in {scopes} adopted; {told}"))?;
    out.flush()?;
    Ok(Answer::Yes)
}

async fn raise<S: Store>(machine: &Machine<S>, entry: &Entry, earlier: &Earlier) -> anyhow::Result<String> {
    let mut raised = 0;
    for (scope, Positions { highest, .. }) in &earlier.scopes {
        raised += u64::from(machine.raise_floor_of(entry, scope, highest + 1).await? == highest + 1);
    }
    Ok(format!("{} past them, no number below is issued", counted(raised, "cursor")))
}

/// Commit by commit: one that was interrupted is done again, and what is set aside twice is the same.
async fn set_aside<S: Store>(
    machine: &Machine<S>,
    entry: &Entry,
    earlier: &Earlier,
) -> anyhow::Result<String> {
    let (mut passed, mut done) = (0, 0);
    let mut progress = Progress::new("numbers", earlier.numbers);
    for (scope, Positions { each, .. }) in &earlier.scopes {
        for positions in each.chunks(COMMIT_MAX) {
            passed += machine.set_aside(entry, scope, positions.to_vec()).await?;
            done += positions.len() as u64;
            progress.show(done, done);
        }
    }
    progress.end();
    let told = "each is passed over from now on".to_owned();
    Ok(match passed {
        0 => told,
        passed => format!(
            "{told}. {} granted before: Bates may have issued them itself",
            if passed == 1 { "1 of them was".to_owned() } else { format!("{passed} of them were") }
        ),
    })
}

fn read(args: &AdoptArgs, entry: &Entry) -> anyhow::Result<Earlier> {
    let mut earlier =
        Earlier { scopes: BTreeMap::new(), numbers: 0, strangers: 0, is_shuffled: entry.spec().shuffled };
    if args.file.extension().is_some_and(|extension| extension == "csv") {
        let mut rows = csv::Reader::from_path(&args.file).with_context(|| cannot_read(&args.file))?;
        let heads = rows.headers()?.clone();
        let column = match &args.column {
            Some(name) => heads.iter().position(|head| head == name).with_context(|| {
                let heads: Vec<&str> = heads.iter().collect();
                format!("{} has no column {name:?}; it has {}", args.file.display(), heads.join(", "))
            })?,
            None => 0,
        };
        for row in rows.records() {
            earlier.add(entry, row?.get(column).unwrap_or_default());
        }
    } else {
        for line in BufReader::new(File::open(&args.file).with_context(|| cannot_read(&args.file))?).lines() {
            earlier.add(entry, line?.trim());
        }
    }
    Ok(earlier)
}

fn cannot_read(file: &Path) -> String {
    format!("cannot read {}", file.display())
}

impl Earlier {
    fn add(&mut self, entry: &Entry, text: &str) {
        if text.is_empty() {
            return;
        }
        let parsed = entry.series().pattern().parse(text).ok();
        // A number that does not show its whole scope could be of any.
        let parsed = parsed.filter(|parsed| parsed.parameters().count() == entry.parameters().count());
        let scope =
            parsed.as_ref().and_then(|parsed| ScopeKey::new(parsed.parameters(), parsed.period()).ok());
        let (Some(parsed), Some(scope)) = (parsed, scope) else {
            self.strangers += 1;
            if self.strangers <= STRANGERS_SHOWN as u64 {
                output::print_note(&format!("{:?} is no number of the series", output::printable(text)));
            }
            return;
        };
        self.numbers += 1;
        let position = parsed.position().value();
        let positions = self.scopes.entry(scope).or_default();
        positions.highest = position.max(positions.highest);
        if self.is_shuffled {
            positions.each.push(position);
        }
    }
}
