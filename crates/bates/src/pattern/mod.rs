//! `bates pattern …`: a pattern at work without a server or a store.

mod capacity;
mod compile;
mod parse;
mod render;
mod texts;
mod validate;

use clap::Subcommand;

use crate::output::{Answer, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum PatternCommand {
    Render(render::RenderArgs),
    Parse(parse::ParseArgs),
    Validate(validate::ValidateArgs),
    Capacity(capacity::CapacityArgs),
}

impl PatternCommand {
    pub(crate) fn run(self, out: &mut Output) -> anyhow::Result<Answer> {
        match self {
            Self::Render(args) => args.run(out),
            Self::Parse(args) => args.run(out),
            Self::Validate(args) => args.run(out),
            Self::Capacity(args) => args.run(out),
        }
    }
}
