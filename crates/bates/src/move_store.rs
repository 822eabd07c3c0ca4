//! `bates move-store`: moves everything from one store to another.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Result, anyhow};
use bates_core::{
    Actor, Departure, MoveError, MoveMark, MoveProgress, NamedStore, Store, SystemRuntime, cancel_departure,
    mark_left, move_store, recall_from_nodes,
};
use bates_postgres::PostgresStore;
use bates_sqlite::SqliteStore;
use clap::Args;

use crate::config::StoreLocation;
use crate::operator::command_user;
use crate::output::{self, Output, count_of, group_digits};
use crate::recall::{RecallArgs, list_nodes};

/// Move everything from one store to another
///
/// Moves cursors, permutation keys, the ledger, documents and reservations in every state, idempotency keys, gaps,
/// client leases, audit records, series created at run time, tokens with what they took of the quotas of the day, and
/// the operations log, which records the move. The old store is marked as left before anything is copied, and is
/// never served again. The new store is not served until the copy is complete. If the move is interrupted, run the
/// command again to finish it. Stop the server of a data folder first. Nodes on PostgreSQL stop issuing and delivering
/// by themselves, and the numbers that they hold in memory become gaps; stop the nodes first to avoid these gaps.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates move-store sqlite:bates-data postgres://bates@db/numbers\n  \
    bates move-store postgres://bates@db/numbers sqlite:/var/lib/bates\n\n\
    The password comes from the address, or from PGPASSWORD.")]
pub(crate) struct MoveStoreArgs {
    /// The old store: `sqlite:FOLDER` or `postgres://user@host/database`
    from: String,

    /// The new store, which must be empty
    to: String,

    #[command(flatten)]
    recall: RecallArgs,
}

impl MoveStoreArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        // Parsed here and not by clap: its errors show the value, which may hold a password.
        let store = |which: &str, given: &str| {
            given.parse::<StoreLocation>().map_err(|error| anyhow!("the {which} store: {error}"))
        };
        let (old, new) = (store("old", &self.from)?, store("new", &self.to)?);
        let from = old.to_string();
        let moved = match &old {
            StoreLocation::Folder(path) => {
                let store = SqliteStore::open_to_move(path, bates_sqlite::OpenMode::Existing)?;
                move_into(NamedStore::new(&store, &from), &new, &self.recall).await?
            }
            StoreLocation::Postgres(address, settings) => {
                let opening = bates_postgres::OpenMode::Stopped;
                let store = PostgresStore::open(address, *settings, opening).await?;
                move_into(NamedStore::new(&store, &from), &new, &self.recall).await?
            }
        };
        let (series, moved) = (group_digits(moved.series), describe(moved));
        writeln!(out, "moved {series} series with {moved} from {from} to {new}; numbering continues there")
    }
}

/// Marks the old store as left before it creates the new one. If the new store is refused, the mark is removed and
/// the old store stays in use.
async fn move_into(
    from: NamedStore<'_, impl Store>,
    to: &StoreLocation,
    recall: &RecallArgs,
) -> Result<MoveProgress> {
    let to_name = &*to.to_string();
    let reserved = match to {
        StoreLocation::Folder(path) => SqliteStore::reserve(path)?.then_some(path),
        StoreLocation::Postgres(..) => None,
    };
    let left = leave(from, to_name, recall).await;
    if let (Err(_), Some(folder)) = (&left, reserved) {
        SqliteStore::unreserve(folder)?;
    }
    let departure = left?;
    let copied = copy(from, to, &departure).await;
    if copied.as_ref().is_err_and(is_refusal) {
        cancel_departure(from.store, to_name, &departure).await?;
    }
    copied
}

async fn copy(
    from: NamedStore<'_, impl Store>,
    to: &StoreLocation,
    departure: &Departure,
) -> Result<MoveProgress> {
    let (mark, to_name) = (MoveMark::Arriving(departure.to_move(from.name)), &*to.to_string());
    Ok(match to {
        StoreLocation::Folder(path) => {
            let store = SqliteStore::open_arriving(path, &mark)?;
            move_store(from, NamedStore::new(&store, to_name), departure, show_progress).await?
        }
        StoreLocation::Postgres(address, settings) => {
            let store = PostgresStore::open_arriving(address, *settings, &mark).await?;
            move_store(from, NamedStore::new(&store, to_name), departure, show_progress).await?
        }
    })
}

fn is_refusal(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<MoveError>();
    error.is_none_or(|error| matches!(error, MoveError::NotEmpty(_) | MoveError::Arriving { .. }))
}

/// Marks the old store as left, and waits until no node holds its numbers.
async fn leave(from: NamedStore<'_, impl Store>, to_name: &str, recall: &RecallArgs) -> Result<Departure> {
    let departure = mark_left(&SystemRuntime, Actor::command(&command_user()), from, to_name).await?;
    if let Err(error) = recall_nodes(from.store, recall).await {
        cancel_departure(from.store, to_name, &departure).await?;
        return Err(error);
    }
    Ok(departure)
}

async fn recall_nodes(from: &impl Store, recall: &RecallArgs) -> Result<()> {
    let silent = recall_from_nodes(&SystemRuntime, from, Duration::from_secs(recall.wait)).await?;
    if silent.is_empty() {
        return Ok(());
    }
    let held = list_nodes(&silent);
    if recall.accept_risk {
        output::print_note(&format!(
            "these nodes did not answer and may issue the numbers that they hold until they notice that the store was \
             left; `bates floor` on the new store cannot recall these numbers:{held}"
        ));
        return Ok(());
    }
    Err(anyhow!(
        "nodes did not release their numbers of the old store within {} s:{held}\nStop these nodes and run the command \
         again. With --accept-risk the move goes on, and these nodes may issue their numbers until they notice that the \
         store was left",
        recall.wait
    ))
}

/// Shows progress on one line of a terminal; the result overwrites it.
fn show_progress(progress: MoveProgress) {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        let _ = write!(terminal, "\r{} …\r", describe(progress));
    }
}

fn describe(MoveProgress { scopes, documents, keys, records, .. }: MoveProgress) -> String {
    let (scopes, documents) = (count_of(scopes, "scope"), count_of(documents, "document"));
    let keys = count_of(keys, "idempotency key");
    match records {
        0 => format!("{scopes}, {documents} and {keys}"),
        _ => format!("{scopes}, {documents}, {keys} and {}", count_of(records, "audit record")),
    }
}
