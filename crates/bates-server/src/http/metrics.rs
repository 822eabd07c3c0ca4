//! `/metrics`, in the text format of Prometheus. Must never use a scope as a label: there may be millions.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use axum::http::header;
use axum::response::IntoResponse;
use bates_core::{Counts, HeldLevel, LATENCY_BOUNDS_MICROS, Machine, MachineError, PoolCounts, Store};
use tokio::time::timeout;

use super::permit::Permit;
use super::routes::Context;
use crate::Defense;
use crate::defense::Event;

/// How long counting documents may take: a scraper does not wait long.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

const LATENCY: &str = "bates_store_grant_seconds";

/// Metrics for Prometheus
///
/// A caller with limited rights sees the metrics of its series; only one without limits also sees those of the whole
/// server: connections, memory and how long the store takes.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Counters, gauges and a histogram in the text format of Prometheus", body = String),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The caller may not read metrics")))]
pub(super) async fn export_metrics<S: Store>(context: Context<S>, permit: Permit) -> impl IntoResponse {
    let machine = &context.machine;
    let mut text = MetricsText::default();
    // While the server is stopping, a failed check says nothing about the store.
    let is_up = matches!(context.health.check(machine).await, Ok(()) | Err(MachineError::Stopping));
    text.header("bates_store_up", "1 if the last write to the store succeeded, 0 otherwise.");
    text.sample("bates_store_up", "", u64::from(is_up));
    write_series(&mut text, machine, &permit);
    write_pools(&mut text, machine, &permit);
    // Figures of the whole server tell a caller with limited rights what the others do.
    if permit.permissions().is_unlimited() {
        write_latency(&mut text, machine);
        write_defense(&mut text, &context.defense);
    }
    text.header("bates_build_info", "The version of the server.");
    text.sample("bates_build_info", concat!("{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1);
    // A failing store must not hide the other metrics.
    if let Ok(counts) = timeout(COUNT_TIMEOUT, machine.count_documents()).await.unwrap_or(Ok(Vec::new())) {
        text.header("bates_documents", "Documents and reservations in the store, by state.");
        for (series, state, count) in counts.into_iter().filter(|(series, ..)| permit.sees_all_of(series)) {
            text.sample("bates_documents", &format!("{{series=\"{series}\",state=\"{state}\"}}"), count);
        }
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text.0)
}

#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn header(&mut self, name: &str, help: &str) {
        let kind = match name {
            LATENCY => "histogram",
            _ if name.ends_with("_total") => "counter",
            _ => "gauge",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes one sample. The labels include their braces, or are empty.
    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Writes each metric with one sample per series.
    fn table<T>(&mut self, metrics: &[Metric<T>], series: &[(&str, T)]) {
        for Metric { name, help, value } in metrics {
            self.header(name, help);
            for (series, state) in series {
                self.sample(name, &format!("{{series=\"{series}\"}}"), value(state));
            }
        }
    }
}

struct Metric<T> {
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> u64,
}

fn metric<T>(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Metric<T> {
    Metric { name, help, value }
}

struct SeriesState<'a> {
    counts: &'a Counts,
    level: u64,
    scopes: u64,
    capacity: u64,
}

fn write_series<S: Store>(text: &mut MetricsText, machine: &Machine<S>, permit: &Permit) {
    const REMAINING: &str = "The fewest numbers left in any scope that this node knows.";
    const ERRORS: &str = "Grant requests that the store refused or failed.";
    let metrics: [Metric<SeriesState<'_>>; 7] = [
        metric("bates_issued_total", "Numbers issued.", |state| state.counts.issued()),
        metric("bates_waits_total", "Requests that waited for the store.", |state| state.counts.waits()),
        metric("bates_refills_total", "Grants made by the store.", |state| state.counts.refills()),
        metric("bates_refill_errors_total", ERRORS, |state| state.counts.refill_errors()),
        metric("bates_level", "Numbers granted and held in memory.", |state| state.level),
        metric("bates_scopes_in_memory", "Scopes held in memory.", |state| state.scopes),
        metric("bates_capacity", "Numbers in one scope of the series.", |state| state.capacity),
    ];
    let (registry, levels, now) = (machine.registry(), machine.levels(), machine.now());
    let visible = || registry.entries().filter(|entry| permit.sees_all_of(entry.series().name()));
    let states = visible().map(|entry| {
        let name = entry.series().name();
        let HeldLevel { held, scopes } = levels.get(name).copied().unwrap_or_default();
        let (counts, level, capacity) = (entry.counts(), entry.numbers_in(held), entry.capacity());
        (name.as_str(), SeriesState { counts, level, scopes, capacity })
    });
    text.table(&metrics, &states.collect::<Vec<_>>());
    let remaining =
        visible().filter_map(|entry| Some((entry.series().name().as_str(), entry.remaining(now)?)));
    text.table(&[metric("bates_remaining", REMAINING, |count| *count)], &remaining.collect::<Vec<_>>());
}

fn write_pools<S: Store>(text: &mut MetricsText, machine: &Machine<S>, permit: &Permit) {
    const REDIS_UP: &str = "1 if the Redis server of the pools answered the last request, 0 otherwise.";
    const LOW: &str = "Shared pools at or below their watermark.";
    const PUSHED: &str = "Numbers pushed into shared pools by this node.";
    const RENEWALS: &str = "Shared pools that this node emptied and started with a new epoch.";
    let metrics: [Metric<PoolCounts>; 7] = [
        metric("bates_pool_redis_up", REDIS_UP, |counts| counts.is_up.into()),
        metric("bates_pools", "Shared pools.", |counts| counts.pools),
        metric("bates_pool_level", "Numbers in all shared pools of the series.", |counts| counts.level),
        metric("bates_pools_low", LOW, |counts| counts.low),
        metric("bates_pool_pushed_total", PUSHED, |counts| counts.pushed),
        metric("bates_pool_renewals_total", RENEWALS, |counts| counts.renewed),
        metric("bates_pool_fill_errors_total", "Failed fills of shared pools.", |counts| counts.failed),
    ];
    let registry = machine.registry();
    let names = registry.entries().map(|entry| entry.series().name());
    let names = names.filter(|name| permit.sees_all_of(name));
    let counts = names.filter_map(|name| machine.pool_set(name).map(|pools| (name.as_str(), pools.counts())));
    let counts: Vec<_> = counts.collect();
    if !counts.is_empty() {
        text.table(&metrics, &counts);
    }
}

/// Without a label for the address: there may be millions.
fn write_defense(text: &mut MetricsText, defense: &Defense) {
    let (used, max) = defense.memory();
    text.header("bates_connections", "Open connections of both ports.");
    text.sample("bates_connections", "", defense.connection_count());
    text.header("bates_memory_bytes", "Memory that connections, requests and answers hold.");
    text.sample("bates_memory_bytes", "", used);
    text.header("bates_memory_max_bytes", "The most that they may hold.");
    text.sample("bates_memory_max_bytes", "", max);
    text.header("bates_wrong_secrets_total", "Wrong secrets that were checked.");
    text.sample("bates_wrong_secrets_total", "", defense.total(Event::WrongSecret));
    text.header("bates_refused_total", "Secrets, requests and connections refused by a limit.");
    for (reason, event) in [
        ("wrong_secrets", Event::SecretRefused),
        ("strangers", Event::StrangerRefused),
        ("connections", Event::ConnectionRefused),
        ("memory", Event::MemoryRefused),
    ] {
        text.sample("bates_refused_total", &format!("{{reason=\"{reason}\"}}"), defense.total(event));
    }
    text.header("bates_connections_closed_total", "Connections closed to make room for others.");
    for (reason, event) in [("idle", Event::IdleClosed), ("large", Event::LargeClosed)] {
        text.sample(
            "bates_connections_closed_total",
            &format!("{{reason=\"{reason}\"}}"),
            defense.total(event),
        );
    }
}

fn write_latency<S: Store>(text: &mut MetricsText, machine: &Machine<S>) {
    text.header(LATENCY, "Seconds that the store took to grant numbers or to number a document.");
    let latency = machine.latency();
    let cumulative = latency.cumulative();
    let [.., total] = cumulative;
    for (bound, count) in LATENCY_BOUNDS_MICROS.iter().zip(cumulative) {
        let (seconds, micros) = (bound / 1_000_000, bound % 1_000_000);
        text.sample(LATENCY, &format!("_bucket{{le=\"{seconds}.{micros:06}\"}}"), count);
    }
    text.sample(LATENCY, "_bucket{le=\"+Inf\"}", total);
    text.sample(LATENCY, "_sum", latency.sum().as_secs_f64());
    text.sample(LATENCY, "_count", total);
}
