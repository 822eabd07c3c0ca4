//! `bates convert`: the configuration of another generator in the words of Bates.

use std::path::PathBuf;

use clap::Args;

use crate::config;
use crate::output::{Answer, Output};

/// Write the configuration of an OpenG2P id-generator as one of Bates
///
/// Its ID types become series with the same rules. Its variables are laid over the file, as the id-generator does. Settings
/// of its pools have no meaning here: Bates keeps no pool of identifiers. Where the database is, is not written: name it as
/// the store of Bates, or serve with --openg2p-config, which reads the variables of the id-generator.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates convert config/default.yaml > bates.yaml\n  \
    bates check --config bates.yaml\n  \
    bates serve --openg2p-config config/default.yaml")]
pub(crate) struct ConvertArgs {
    /// The file
    file: PathBuf,
}

pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Answer> {
    let series = config::openg2p::series(&args.file, &std::env::vars().collect())?;
    let mut out = Output::new();
    out.line(format_args!("# ID types of an OpenG2P id-generator."))?;
    out.line(format_args!("{}", series.trim_end()))?;
    out.flush()?;
    Ok(Answer::Yes)
}
