//! The `bates` binary: reads the command line, runs the command, answers with an exit code.
//!
//! Exit codes: 0 done; 1 the answer is no (an invalid identifier, an exhausted space); 2 a bad call; 3 input
//! or output failed.

mod adopt;
mod ask;
mod check;
mod command;
mod config;
mod convert;
mod fill;
mod floor;
mod import;
mod init;
mod migrate;
mod move_store;
mod output;
mod pattern;
mod progress;
mod promise;
mod recall;
mod scope;
mod serve;
mod store;

use std::process::ExitCode;

use clap::Parser;

use command::{Bates, Command};
use output::Answer;

fn main() -> ExitCode {
    let bates = Bates::parse();
    let answer = match bates.command {
        Command::Pattern(command) => pattern::run(command),
        Command::Serve(args) => serve::run(&args),
        Command::Next(args) => ask::next(&args),
        Command::Pop(args) => ask::pop(&args),
        Command::Peek(args) => ask::peek(&args),
        Command::Validate(args) => ask::validate(&args),
        Command::Series(args) => ask::series(&args),
        Command::Import(args) => import::run(&args),
        Command::Adopt(args) => adopt::run(&args),
        Command::Outbox(args) => ask::outbox(&args),
        Command::Reconcile(args) => ask::reconcile(&args),
        Command::Gaps(args) => ask::gaps(&args),
        Command::Leases(args) => ask::leases(&args),
        Command::Audit(args) => ask::audit(&args),
        Command::Fill(args) => fill::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Floor(args) => floor::run(&args),
        Command::MoveStore(args) => move_store::run(&args),
        Command::Migrate(args) => migrate::run(&args),
    };
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::FAILURE,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(output::exit_code(&error))
        }
    }
}
