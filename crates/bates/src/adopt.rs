//! `bates adopt`: numbers that an earlier system gave out are never issued. Owns that nobody issues meanwhile.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bates_core::{Entry, Machine, ScopeKey, Store, SystemClock};
use bates_postgres::PostgresStore;
use bates_server::series::Description;
use bates_sqlite::SqliteStore;
use clap::Args;

use crate::config::{Config, ConfigArgs, StoreAt};
use crate::output::{self, Answer, Output, counted};

/// Nodes look every second whether they may go on; what they held is given up by then.
const NODES_STOP_WITHIN: Duration = Duration::from_secs(3);

/// Texts that are shown of those that are no numbers.
const STRANGERS_SHOWN: usize = 5;

/// Never issue numbers that an earlier system already gave out
///
/// Each line of the file is such a number; of a CSV file, each row has one in the column that --column names, or in the
/// first. The cursor of each scope is raised past its highest; one that is higher stays. Nothing is written if a text is
/// no number of the series, unless --skip-others. The server of a data folder must be stopped; nodes on PostgreSQL stop
/// issuing by themselves meanwhile and give up what they hold.
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

    #[command(flatten)]
    config: ConfigArgs,
}

/// The highest position of each scope, and how many numbers there were.
#[derive(Default)]
struct Highest {
    scopes: BTreeMap<ScopeKey, u64>,
    numbers: u64,
    strangers: u64,
}

pub(crate) fn run(args: &AdoptArgs) -> anyhow::Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(open_and_adopt(args))
}

async fn open_and_adopt(args: &AdoptArgs) -> anyhow::Result<Answer> {
    let config = args.config.load(None, None)?;
    match &config.store {
        StoreAt::Folder(path) => {
            let store = SqliteStore::open(path, bates_sqlite::Opening::Existing)?;
            adopt(&Machine::open(store, config.series, Arc::new(SystemClock)).await?, args, async || Ok(()))
                .await
        }
        StoreAt::Postgres(address, settings) => {
            let store =
                Arc::new(PostgresStore::open(address, *settings, bates_postgres::Opening::Existing).await?);
            let pausing = store.clone();
            let Config { series, .. } = config;
            let machine = Machine::open(store.clone(), series, Arc::new(SystemClock)).await?;
            let pause = async || {
                pausing.pause("numbers of an earlier system are being adopted").await?;
                tokio::time::sleep(NODES_STOP_WITHIN).await;
                anyhow::Ok(())
            };
            let adopted = adopt(&machine, args, pause).await;
            // Whatever came of it: nothing was lowered.
            store.accept().await?;
            adopted
        }
    }
}

async fn adopt<S: Store>(
    machine: &Machine<S>,
    args: &AdoptArgs,
    pause: impl AsyncFnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Answer> {
    machine.restore(Description::read_spec).await?;
    let Some(entry) = machine.named(&args.series) else { bail!("there is no series {:?}", args.series) };
    if entry.spec().shuffled {
        bail!("series {:?} is shuffled: numbers of such a series cannot be adopted yet", args.series);
    }
    let highest = read(args, &entry)?;
    if highest.strangers > 0 && !args.skip_others {
        let strangers = counted(highest.strangers, "text");
        bail!(
            "{strangers} in {} that cannot be a number of series {:?}: nothing is adopted; --skip-others passes over them",
            args.file.display(),
            args.series
        );
    }
    pause().await?;
    let mut raised = 0;
    for (scope, last) in &highest.scopes {
        raised += u64::from(machine.raise_floor_of(&entry, scope, last + 1).await? == last + 1);
    }
    machine.close().await;
    let (numbers, scopes) =
        (counted(highest.numbers, "number"), counted(highest.scopes.len() as u64, "scope"));
    let mut out = Output::new();
    out.line(format_args!(
        "{numbers} in {scopes} adopted; {} past them, no number below is issued",
        counted(raised, "cursor")
    ))?;
    out.flush()?;
    Ok(Answer::Yes)
}

fn read(args: &AdoptArgs, entry: &Entry) -> anyhow::Result<Highest> {
    let mut highest = Highest::default();
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
            highest.add(entry, row?.get(column).unwrap_or_default());
        }
    } else {
        for line in BufReader::new(File::open(&args.file).with_context(|| cannot_read(&args.file))?).lines() {
            highest.add(entry, line?.trim());
        }
    }
    Ok(highest)
}

fn cannot_read(file: &Path) -> String {
    format!("cannot read {}", file.display())
}

impl Highest {
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
        let last = self.scopes.entry(scope).or_default();
        *last = parsed.position().value().max(*last);
    }
}
