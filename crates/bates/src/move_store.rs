//! `bates move-store`: everything from one store to another, where numbering goes on.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Result, anyhow};
use bates_core::{
    Departure, Mark, MoveError, Moved, NamedStore, Store, SystemRuntime, leave_store, move_store,
    release_nodes, stay_in_store,
};
use bates_postgres::PostgresStore;
use bates_sqlite::SqliteStore;
use clap::Args;

use crate::config::StoreAt;
use crate::output::{self, Output, counted, grouped};
use crate::recall::{RecallArgs, listed_nodes};

/// Move everything from one store to another, where numbering goes on
///
/// Cursors, permutation keys, the ledger, documents and reservations in every state, idempotency keys, gaps, leases of
/// clients, and the series that were made at run time. The old store is marked as left before anything is copied, and is never served
/// again; the new one is not served until everything is there. A move that was interrupted is finished by running it
/// again. Servers on a folder must be stopped. Nodes on PostgreSQL stop issuing and delivering by themselves, and the
/// numbers that they hold in memory become gaps: stop them first, and there are none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates move-store sqlite:bates-data postgres://bates@db/numbers\n  \
    bates move-store postgres://bates@db/numbers sqlite:/var/lib/bates\n\n\
    Passwords are taken from the address, or from PGPASSWORD.")]
pub(crate) struct MoveStoreArgs {
    /// The old store: `sqlite:` and a folder, or `postgres://` and an address
    from: String,

    /// The new store, which must be empty
    to: String,

    #[command(flatten)]
    recall: RecallArgs,
}

impl MoveStoreArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        // Read here and not by clap, whose errors show what was given: it may hold a password.
        let store = |which: &str, given: &str| {
            given.parse::<StoreAt>().map_err(|error| anyhow!("the {which} store: {error}"))
        };
        let (old, new) = (store("old", &self.from)?, store("new", &self.to)?);
        let from = old.to_string();
        let moved = match &old {
            StoreAt::Folder(path) => {
                let store = SqliteStore::open_to_move(path, bates_sqlite::Opening::Existing)?;
                into(NamedStore::new(&store, &from), &new, &self.recall).await?
            }
            StoreAt::Postgres(address, settings) => {
                let opening = bates_postgres::Opening::Stopped;
                let store = PostgresStore::open(address, *settings, opening).await?;
                into(NamedStore::new(&store, &from), &new, &self.recall).await?
            }
        };
        let (series, moved) = (grouped(moved.series), told(moved));
        writeln!(
            out,
            "{series} series with {moved} are moved: {from} is left, and numbering goes on in {new}"
        )
    }
}

/// Leaves the old store before the new one is made. A new store that is refused is empty, and the old one is kept.
async fn into(from: NamedStore<'_, impl Store>, to: &StoreAt, recall: &RecallArgs) -> Result<Moved> {
    let to_name = &*to.to_string();
    let reserved = match to {
        StoreAt::Folder(path) => SqliteStore::reserve(path)?.then_some(path),
        StoreAt::Postgres(..) => None,
    };
    let left = leave(from, to_name, recall).await;
    if let (Err(_), Some(folder)) = (&left, reserved) {
        SqliteStore::unreserve(folder)?;
    }
    let departure = left?;
    let copied = copy(from, to, &departure).await;
    if copied.as_ref().is_err_and(is_refusal) {
        stay_in_store(from.store, to_name, &departure).await?;
    }
    copied
}

async fn copy(from: NamedStore<'_, impl Store>, to: &StoreAt, departure: &Departure) -> Result<Moved> {
    let (mark, to_name) = (Mark::Arriving(departure.toward(from.name)), &*to.to_string());
    Ok(match to {
        StoreAt::Folder(path) => {
            let store = SqliteStore::open_arriving(path, &mark)?;
            move_store(from, NamedStore::new(&store, to_name), departure, tell).await?
        }
        StoreAt::Postgres(address, settings) => {
            let store = PostgresStore::open_arriving(address, *settings, &mark).await?;
            move_store(from, NamedStore::new(&store, to_name), departure, tell).await?
        }
    })
}

fn is_refusal(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<MoveError>();
    error.is_none_or(|error| matches!(error, MoveError::NotEmpty(_) | MoveError::Arriving { .. }))
}

/// Marks the old store as left, and waits until no node holds numbers of it.
async fn leave(from: NamedStore<'_, impl Store>, to_name: &str, recall: &RecallArgs) -> Result<Departure> {
    let departure = leave_store(&SystemRuntime, from, to_name).await?;
    if let Err(error) = release(from.store, recall).await {
        stay_in_store(from.store, to_name, &departure).await?;
        return Err(error);
    }
    Ok(departure)
}

async fn release(from: &impl Store, recall: &RecallArgs) -> Result<()> {
    let silent = release_nodes(&SystemRuntime, from, Duration::from_secs(recall.wait)).await?;
    if silent.is_empty() {
        return Ok(());
    }
    let held = listed_nodes(&silent);
    if recall.accept_risk {
        output::print_note(&format!(
            "these nodes did not answer, and may issue the numbers that they hold until they see that the store was \
             left; floors in the new store do not know of them:{held}"
        ));
        return Ok(());
    }
    Err(anyhow!(
        "nodes did not give up numbers of the old store within {} s:{held}\nStop these nodes and run the command again, or \
         go on with --accept-risk: they may then issue these numbers until they see that the store was left",
        recall.wait
    ))
}

/// Shows the progress on a terminal, in one line that the answer is written over.
fn tell(moved: Moved) {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        let _ = write!(terminal, "\r{} …\r", told(moved));
    }
}

fn told(Moved { scopes, documents, keys, records, .. }: Moved) -> String {
    let (scopes, documents) = (counted(scopes, "scope"), counted(documents, "document"));
    let keys = counted(keys, "idempotency key");
    match records {
        0 => format!("{scopes}, {documents} and {keys}"),
        _ => format!("{scopes}, {documents}, {keys} and {}", counted(records, "audit record")),
    }
}
