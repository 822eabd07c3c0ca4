//! `bates init`: a commented configuration to start from.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use crate::config;
use crate::output::{Answer, Output};

/// Write a commented configuration file
///
/// It says what is the case without a file. A file that is there is never overwritten.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates init\n  bates init /etc/bates/bates.yaml")]
pub(crate) struct InitArgs {
    /// The file to write
    #[arg(value_name = "FILE", default_value = config::FILE)]
    file: PathBuf,
}

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<Answer> {
    let shown = args.file.display();
    let mut file = match File::create_new(&args.file) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!("{shown} is there already"),
        file => file.with_context(|| format!("cannot write {shown}"))?,
    };
    file.write_all(config::BUILT_IN.as_bytes()).with_context(|| format!("cannot write {shown}"))?;
    let mut out = Output::new();
    out.line(format_args!("{shown} is written. Change it, then: bates check, bates serve"))?;
    out.flush()?;
    Ok(Answer::Yes)
}
