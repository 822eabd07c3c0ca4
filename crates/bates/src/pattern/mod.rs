//! `bates pattern …`: a pattern at work without a server or a store.

mod capacity;
mod compile;
mod parse;
mod render;
mod texts;
mod validate;

use clap::Subcommand;

use crate::output::Answer;

#[derive(Debug, Subcommand)]
pub(crate) enum PatternCommand {
    Render(render::RenderArgs),
    Parse(parse::ParseArgs),
    Validate(validate::ValidateArgs),
    Capacity(capacity::CapacityArgs),
}

pub(crate) fn run(command: PatternCommand) -> anyhow::Result<Answer> {
    match command {
        PatternCommand::Render(args) => render::run(args),
        PatternCommand::Parse(args) => parse::run(&args),
        PatternCommand::Validate(args) => validate::run(&args),
        PatternCommand::Capacity(args) => capacity::run(args),
    }
}
