//! `bates init` and `bates convert`: write configuration files.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use bates_sqlite::OpenMode;
use clap::Args;

use super::{BUILT_IN, ConfigArgs, FILE, openg2p};
use crate::output::Output;

/// Write a commented configuration file, and make the store
///
/// The file holds the defaults. An existing file is never overwritten. With --store, the store that the configuration
/// names is made as well, unless there is one, and its id is written to the file: a server that finds another store at
/// the same address refuses it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates init\n  \
    bates init --store\n  \
    bates init /etc/bates/bates.yaml\n  \
    BATES_STORE=postgres://owner@db/numbers bates init --store /etc/bates/bates.yaml")]
pub(crate) struct InitArgs {
    /// The file to write; with --store, it may exist
    #[arg(value_name = "FILE", default_value = FILE)]
    file: PathBuf,

    /// Make the store, and write its id to the file
    #[arg(long)]
    store: bool,
}

impl InitArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let shown = self.file.display();
        match File::create_new(&self.file) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.store => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!("{shown} already exists"),
            file => {
                let mut file = file.with_context(|| format!("cannot write {shown}"))?;
                let text = built_in(std::env::var_os("BATES_STORE").is_some());
                file.write_all(text.as_bytes()).with_context(|| format!("cannot write {shown}"))?;
                writeln!(out, "wrote {shown}")?;
            }
        }
        if self.store {
            self.make_store(out).await
        } else {
            writeln!(out, "edit it, then run: bates init --store")
        }
    }

    async fn make_store(&self, out: &mut Output) -> Result<()> {
        let shown = self.file.display();
        let load =
            || ConfigArgs { config: Some(self.file.clone()), ..ConfigArgs::default() }.load(None, None);
        let config = load()?;
        if let Some(id) = config.store_id {
            bail!(
                "{shown} is for the store with the id {id} already (store_id): a new one would have another id"
            );
        }
        let id = config.open_store(OpenMode::New).await?.identity();
        writeln!(out, "made the store {}", config.store)?;
        let text = std::fs::read_to_string(&self.file)?;
        let pinned = format!("{}\n\n# The only store that may be used.\nstore_id: {id}\n", text.trim_end());
        std::fs::write(&self.file, pinned)
            .with_context(|| format!("cannot write `store_id: {id}` to {shown}"))?;
        if load().is_err() {
            std::fs::write(&self.file, text)?;
            bail!("cannot add to {shown}, which stays as it was: write `store_id: {id}` into it");
        }
        writeln!(out, "wrote its id to {shown}; run: bates check, bates serve")
    }
}

/// Where the environment names the store, the file names none.
fn built_in(is_store_named: bool) -> String {
    let line = "\nstore: sqlite:bates-data\n";
    if is_store_named {
        BUILT_IN.replace(line, "\n# store: sqlite:bates-data\n")
    } else {
        BUILT_IN.to_owned()
    }
}

/// Convert the configuration of an OpenG2P id-generator to one for Bates
///
/// Its ID types become series with the same rules. Its variables override the file, as they do for the id-generator.
/// Settings of its pools are ignored, because Bates keeps no pool of identifiers. The database is not written: name
/// it as the store of Bates, or serve with --openg2p-config, which reads the variables of the id-generator.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates convert config/default.yaml > bates.yaml\n  \
    bates check --config bates.yaml\n  \
    bates serve --openg2p-config config/default.yaml")]
pub(crate) struct ConvertArgs {
    /// The configuration file of the id-generator
    file: PathBuf,
}

impl ConvertArgs {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        let series = openg2p::series(&self.file, &std::env::vars().collect())?;
        writeln!(out, "# ID types of an OpenG2P id-generator.\n{}", series.trim_end())
    }
}
