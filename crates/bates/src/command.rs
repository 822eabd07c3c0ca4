//! The commands of the binary, as clap reads them.

use clap::{Parser, Subcommand};

use crate::{adopt, ask, check, convert, fill, floor, import, init, migrate, move_store, pattern, serve};

/// A numbering machine: identifiers that are never repeated, fast, and accounted for.
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
    Exit codes: 0 done; 1 the answer is no; 2 a bad call; 3 something outside failed."
)]
pub(crate) struct Bates {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::ServeArgs),
    Next(ask::NextArgs),
    Pop(ask::PopArgs),
    Peek(ask::PeekArgs),
    Validate(ask::ValidateArgs),
    Series(ask::SeriesArgs),
    Import(import::ImportArgs),
    Adopt(adopt::AdoptArgs),
    Outbox(ask::OutboxArgs),
    Reconcile(ask::ReconcileArgs),
    Gaps(ask::GapsArgs),
    Leases(ask::LeasesArgs),
    Audit(ask::AuditArgs),
    Fill(fill::FillArgs),
    Init(init::InitArgs),
    Check(check::CheckArgs),
    Convert(convert::ConvertArgs),
    Floor(floor::FloorArgs),
    MoveStore(move_store::MoveStoreArgs),
    Migrate(migrate::MigrateArgs),
    /// Try a pattern: positions into identifiers and back, without a server.
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
