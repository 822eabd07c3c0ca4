//! `bates init` and `bates convert`: write configuration files.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{BUILT_IN, FILE, openg2p};
use crate::output::Output;

/// Write a commented configuration file
///
/// The file holds the defaults. An existing file is never overwritten.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates init\n  bates init /etc/bates/bates.yaml")]
pub(crate) struct InitArgs {
    /// The file to write
    #[arg(value_name = "FILE", default_value = FILE)]
    file: PathBuf,
}

impl InitArgs {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        let shown = self.file.display();
        let mut file = match File::create_new(&self.file) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!("{shown} already exists"),
            file => file.with_context(|| format!("cannot write {shown}"))?,
        };
        file.write_all(BUILT_IN.as_bytes()).with_context(|| format!("cannot write {shown}"))?;
        writeln!(out, "wrote {shown}; edit it, then run: bates check, bates serve")
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
