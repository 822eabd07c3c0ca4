//! The `bates` binary: reads the command line, runs the command, and maps the result to an exit code.
//!
//! Exit codes: 0 success; 1 the answer is no (an invalid identifier, an exhausted scope); 2 invalid usage or
//! configuration; 3 a server, a store or other I/O failed.

mod adopt;
mod background;
mod backup;
mod check;
mod config;
mod fill;
mod floor;
mod floor_all;
mod import;
mod migrate;
mod move_store;
mod operator;
mod output;
mod pattern;
mod progress;
mod promise;
mod recall;
mod remote;
mod scope;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::{Answer, Output};

/// A numbering machine: issues identifiers that never repeat, and accounts for each of them
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
    bates serve\n  \
    bates next document project=PROJ type=9012 -n 3\n  \
    bates init && bates check\n  \
    bates pattern render '{project}-{type}-{seq}' --position 1001 \\\n    \
    --param project=PROJ --param type=9012\n  \
    bates pattern capacity '{seq:base62:6}' --rate 1000/s\n\n\
    Exit codes: 0 success; 1 the answer is no; 2 invalid usage or configuration; \
    3 a server, a store or other I/O failed."
)]
struct Bates {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Next(remote::numbers::NextArgs),
    Pop(remote::numbers::PopArgs),
    Peek(remote::numbers::PeekArgs),
    Validate(remote::validate::ValidateArgs),
    Series(remote::series::SeriesArgs),
    Import(import::ImportArgs),
    Adopt(adopt::AdoptArgs),
    Outbox(remote::outbox::OutboxArgs),
    Reconcile(remote::gaps::ReconcileArgs),
    Gaps(remote::gaps::GapsArgs),
    Leases(remote::leases::LeasesArgs),
    Audit(remote::audit::AuditArgs),
    Operations(remote::operations::OperationsArgs),
    Token(remote::tokens::TokenArgs),
    Fill(fill::FillArgs),
    Init(config::InitArgs),
    Check(check::CheckArgs),
    Convert(config::ConvertArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Floor(floor::FloorArgs),
    MoveStore(move_store::MoveStoreArgs),
    Migrate(migrate::MigrateArgs),
    /// Try a pattern without a server: render, parse and validate identifiers
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        bates pattern render 'INV-{seq:6}' --position 1 --count 3\n  \
        bates pattern parse 'INV-{seq:6}' INV-000042\n  \
        bates pattern validate '{seq:9}{check:luhn}' 1234567897\n  \
        bates pattern capacity '{seq:base62:6}' --rate 1000/s"
    )]
    Pattern(pattern::PatternCommand),
}

impl Command {
    /// A command that cannot answer no returns `()`.
    async fn run(self, out: &mut Output) -> anyhow::Result<Answer> {
        match self {
            Self::Serve(args) => args.run(out).await?,
            Self::Next(args) => return args.run(out).await,
            Self::Pop(args) => return args.run(out).await,
            Self::Peek(args) => return args.run(out).await,
            Self::Validate(args) => return args.run(out).await,
            Self::Series(args) => args.run(out).await?,
            Self::Import(args) => return args.run(out).await,
            Self::Adopt(args) => args.run(out).await?,
            Self::Outbox(args) => args.run(out).await?,
            Self::Reconcile(args) => args.run(out).await?,
            Self::Gaps(args) => args.run(out).await?,
            Self::Leases(args) => args.run(out).await?,
            Self::Audit(args) => return args.run(out).await,
            Self::Operations(args) => args.run(out).await?,
            Self::Token(args) => args.run(out).await?,
            Self::Fill(args) => return args.run(out).await,
            Self::Init(args) => args.run(out).await?,
            Self::Check(args) => args.run(out)?,
            Self::Convert(args) => args.run(out)?,
            Self::Backup(args) => args.run(out)?,
            Self::Restore(args) => args.run(out)?,
            Self::Floor(args) => return Box::pin(args.run(out)).await,
            Self::MoveStore(args) => args.run(out).await?,
            Self::Migrate(args) => args.run(out).await?,
            Self::Pattern(command) => return command.run(out),
        }
        Ok(Answer::Yes)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut out = Output::new();
    let answer = Box::pin(Bates::parse().command.run(&mut out)).await;
    let flushed = out.flush();
    let answer = answer.and_then(|answer| flushed.map(|()| answer));
    match answer.map_err(remote::server::explain) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::FAILURE,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(output::exit_code(&error))
        }
    }
}
