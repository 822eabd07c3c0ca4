//! `/metrics`, as Prometheus reads it. A label for each series, never one for a scope.

use std::fmt::{self, Write};
use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use bates_core::{
    Counts, LATENCY_BOUNDS_MICROS, Level, Machine, MachineError, PoolTally, SeriesName,
    State as DocumentState, Store,
};
use tokio::time::timeout;

use super::routes::Context;

/// What happened, for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Counters and gauges in the text format of Prometheus", body = String)))]
pub(super) async fn metrics<S: Store>(State(context): State<Context<S>>) -> impl IntoResponse {
    let mut text = String::new();
    // A server that stops says nothing about its store.
    let is_up = matches!(context.health.check(&context.machine).await, Ok(()) | Err(MachineError::Stopping));
    write_store(&mut text, is_up).expect("a text is written into memory");
    write(&mut text, &context.machine).expect("a text is written into memory");
    // A store that cannot be asked is told of by what it failed to grant; the rest is told all the same.
    if let Ok(tally) = timeout(PATIENCE, context.machine.tally()).await.unwrap_or(Ok(Vec::new())) {
        write_documents(&mut text, &tally).expect("a text is written into memory");
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

/// How long the store is asked about documents: whoever collects metrics does not wait long.
const PATIENCE: Duration = Duration::from_secs(2);

fn write_store(text: &mut String, is_up: bool) -> fmt::Result {
    head(text, "bates_store_up", "Whether the store could be written when it was last asked.", "gauge")?;
    writeln!(text, "bates_store_up {}", u64::from(is_up))
}

fn write_documents(text: &mut String, tally: &[(SeriesName, DocumentState, u64)]) -> fmt::Result {
    head(text, "bates_documents", "Documents and reservations that are kept, by state.", "gauge")?;
    for (series, state, count) in tally {
        writeln!(text, "bates_documents{{series=\"{series}\",state=\"{state}\"}} {count}")?;
    }
    Ok(())
}

/// A counter that each series has.
struct Counter {
    name: &'static str,
    help: &'static str,
    of: fn(&Counts) -> u64,
}

const COUNTERS: [Counter; 4] = [
    Counter { name: "bates_issued_total", help: "Numbers that were issued.", of: Counts::issued },
    Counter {
        name: "bates_waits_total",
        help: "Requests that had to wait for the store.",
        of: Counts::waits,
    },
    Counter { name: "bates_refills_total", help: "Grants of the store.", of: Counts::refills },
    Counter {
        name: "bates_refill_errors_total",
        help: "Grants that the store refused or failed to make.",
        of: Counts::refill_errors,
    },
];

fn write<S: Store>(text: &mut String, machine: &Machine<S>) -> fmt::Result {
    let registry = machine.registry();
    for Counter { name, help, of } in COUNTERS {
        head(text, name, help, "counter")?;
        for entry in registry.entries() {
            writeln!(text, "{name}{{series=\"{}\"}} {}", entry.series().name(), of(entry.counts()))?;
        }
    }
    let levels = machine.levels();
    let level = |series| levels.get(series).copied().unwrap_or_default();
    head(text, "bates_level", "Numbers that are granted and held in memory.", "gauge")?;
    for entry in registry.entries() {
        let Level { held, .. } = level(entry.series().name());
        writeln!(text, "bates_level{{series=\"{}\"}} {}", entry.series().name(), entry.numbers_in(held))?;
    }
    head(text, "bates_scopes_in_memory", "Scopes that are in memory.", "gauge")?;
    for entry in registry.entries() {
        let Level { scopes, .. } = level(entry.series().name());
        writeln!(text, "bates_scopes_in_memory{{series=\"{}\"}} {scopes}", entry.series().name())?;
    }
    write_remaining(text, machine)?;
    write_pools(text, machine)?;
    write_latency(text, machine)?;
    head(text, "bates_build_info", "The version of the server.", "gauge")?;
    writeln!(text, "bates_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))
}

/// How much a scope of each series has in all, and how much is left in those of which something was granted.
fn write_remaining<S: Store>(text: &mut String, machine: &Machine<S>) -> fmt::Result {
    head(text, "bates_capacity", "Numbers that each scope of a series has in all.", "gauge")?;
    for entry in machine.registry().entries() {
        writeln!(text, "bates_capacity{{series=\"{}\"}} {}", entry.series().name(), entry.capacity())?;
    }
    head(text, "bates_remaining", "The fewest numbers left in any scope that this node knows of.", "gauge")?;
    let (registry, now) = (machine.registry(), machine.now());
    for entry in registry.entries() {
        if let Some(remaining) = entry.remaining(now) {
            writeln!(text, "bates_remaining{{series=\"{}\"}} {remaining}", entry.series().name())?;
        }
    }
    Ok(())
}

/// What is told of the pools of each series.
struct OfPools {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    of: fn(&PoolTally) -> u64,
}

const OF_POOLS: [OfPools; 7] = [
    OfPools {
        name: "bates_pool_redis_up",
        help: "Whether the Redis server of the pools answered when it was last asked.",
        kind: "gauge",
        of: |tally| u64::from(tally.is_up),
    },
    OfPools {
        name: "bates_pools",
        help: "Shared pools that are kept.",
        kind: "gauge",
        of: |tally| tally.pools,
    },
    OfPools {
        name: "bates_pool_level",
        help: "Numbers in all shared pools of a series.",
        kind: "gauge",
        of: |tally| tally.level,
    },
    OfPools {
        name: "bates_pools_low",
        help: "Shared pools that are at their watermark or below.",
        kind: "gauge",
        of: |tally| tally.low,
    },
    OfPools {
        name: "bates_pool_pushed_total",
        help: "Numbers that this node pushed into shared pools.",
        kind: "counter",
        of: |tally| tally.pushed,
    },
    OfPools {
        name: "bates_pool_renewals_total",
        help: "Shared pools that this node began anew.",
        kind: "counter",
        of: |tally| tally.renewed,
    },
    OfPools {
        name: "bates_pool_fill_errors_total",
        help: "Fillings of shared pools that failed.",
        kind: "counter",
        of: |tally| tally.failed,
    },
];

/// Of series that have pools.
fn write_pools<S: Store>(text: &mut String, machine: &Machine<S>) -> fmt::Result {
    let registry = machine.registry();
    let names = registry.entries().map(|entry| entry.series().name());
    let tallies: Vec<_> =
        names.filter_map(|name| machine.kept(name).map(|kept| (name, kept.tally()))).collect();
    for OfPools { name, help, kind, of } in OF_POOLS.iter().filter(|_| !tallies.is_empty()) {
        head(text, name, help, kind)?;
        for (series, tally) in &tallies {
            writeln!(text, "{name}{{series=\"{series}\"}} {}", of(tally))?;
        }
    }
    Ok(())
}

fn write_latency<S: Store>(text: &mut String, machine: &Machine<S>) -> fmt::Result {
    const NAME: &str = "bates_store_grant_seconds";
    head(text, NAME, "How long the store took to grant numbers or to number a document.", "histogram")?;
    let latency = machine.latency();
    let cumulative = latency.cumulative();
    let [.., all] = cumulative;
    for (bound, count) in LATENCY_BOUNDS_MICROS.iter().zip(cumulative) {
        let (whole, rest) = (bound / 1_000_000, bound % 1_000_000);
        writeln!(text, "{NAME}_bucket{{le=\"{whole}.{rest:06}\"}} {count}")?;
    }
    writeln!(text, "{NAME}_bucket{{le=\"+Inf\"}} {all}")?;
    writeln!(text, "{NAME}_sum {}", latency.sum().as_secs_f64())?;
    writeln!(text, "{NAME}_count {all}")
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}
