//! The `bates` binary: reads the command line, runs the command, answers with an exit code.
//!
//! Exit codes: 0 done; 1 the answer is no (an invalid identifier, an exhausted space); 2 a bad call; 3 input
//! or output failed.

mod command;
mod output;
mod pattern;
mod serve;

use std::process::ExitCode;

use clap::Parser;

use command::{Bates, Command};
use output::Answer;

fn main() -> ExitCode {
    let bates = Bates::parse();
    let answer = match bates.command {
        Command::Pattern(command) => pattern::run(command),
        Command::Serve(args) => serve::run(&args),
    };
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::FAILURE,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(if output::is_io(&error) { 3 } else { 2 })
        }
    }
}
