//! `cargo xtask bench sqlite`: grants per second of the embedded store, in `TMPDIR`, and the processor time of each.
//! One caller waits for every commit; many callers share commits. The loads take turns; medians are printed.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bates_core::store::prelude::*;
use bates_core::{Definition, GrantPurpose, GrantRequest, ScopeId, ScopeKey};
use bates_sqlite::{OpenMode, SqliteStore};
use tempfile::TempDir;

/// The number of callers, and the grants that all of them together request in a round.
const LOADS: [(u64, u64); 3] = [(1, 2_000), (16, 20_000), (1_000, 200_000)];
const SCOPES: u64 = 1_000;
const ROUNDS: usize = 9;

#[tokio::main]
async fn main() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), OpenMode::First).unwrap());
    store.pin(definition(), None).await.unwrap();
    let mut measured = [const { (Vec::new(), Vec::new()) }; LOADS.len()];
    for _ in 0..ROUNDS {
        for ((callers, grants), (rates, costs)) in LOADS.iter().zip(&mut measured) {
            let (started, used) = (Instant::now(), processor_time());
            request_grants(&store, *callers, grants / callers).await;
            let micros = u64::try_from(started.elapsed().as_micros()).unwrap();
            rates.push(grants * 1_000_000 / micros);
            costs.push(u64::try_from(processor_time().saturating_sub(used).as_nanos()).unwrap() / grants);
        }
    }
    for ((callers, _), (rates, costs)) in LOADS.iter().zip(&mut measured) {
        rates.sort_unstable();
        costs.sort_unstable();
        let (rate, cost) = (rates[ROUNDS / 2], costs[ROUNDS / 2]);
        println!("{callers:>5} callers  {rate:>7} grants/s  {cost:>6} ns of processor time each");
    }
}

/// The processor time of this process, user and system.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // The kernel reports hundredths of a second.
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

fn definition() -> Definition {
    Definition {
        series: "counter".parse().unwrap(),
        template: "{seq}".into(),
        parameters: "name".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
        rules: None,
    }
}

async fn request_grants(store: &Arc<SqliteStore>, callers: u64, each: u64) {
    let callers = (0..callers).map(|caller| {
        let store = store.clone();
        tokio::spawn(async move {
            for turn in 0..each {
                store.grant(request((caller * 7 + turn * 13) % SCOPES)).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

fn request(scope: u64) -> GrantRequest {
    let scope = ScopeKey::new([("name", &*scope.to_string())], None).unwrap();
    GrantRequest {
        scope_id: ScopeId { series: "counter".parse().unwrap(), scope },
        count: 10,
        count_needed: 10,
        start: 1,
        end: 1 << 50,
        scopes_max: SCOPES,
        purpose: GrantPurpose::HandOut,
        promise: None,
        held_from: None,
    }
}
