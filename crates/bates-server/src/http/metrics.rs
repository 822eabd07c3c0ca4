//! `/metrics`, as Prometheus reads it. A label for each series, never one for a scope.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use axum::http::header;
use axum::response::IntoResponse;
use bates_core::{Counts, LATENCY_BOUNDS_MICROS, Level, Machine, MachineError, PoolTally, Store};
use tokio::time::timeout;

use super::routes::Context;

/// For the store to count documents: collectors of metrics do not wait long.
const PATIENCE: Duration = Duration::from_secs(2);

const LATENCY: &str = "bates_store_grant_seconds";

/// What happened, for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Counters and gauges in the text format of Prometheus", body = String)))]
pub(super) async fn metrics<S: Store>(context: Context<S>) -> impl IntoResponse {
    let machine = &context.machine;
    let mut page = Page::default();
    // A server that stops says nothing about its store.
    let is_up = matches!(context.health.check(machine).await, Ok(()) | Err(MachineError::Stopping));
    page.head("bates_store_up", "Whether the store could be written when it was last asked.");
    page.line("bates_store_up", "", u64::from(is_up));
    write_series(&mut page, machine);
    write_pools(&mut page, machine);
    write_latency(&mut page, machine);
    page.head("bates_build_info", "The version of the server.");
    page.line("bates_build_info", concat!("{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1);
    // If the store fails, all other metrics are reported all the same.
    if let Ok(tally) = timeout(PATIENCE, machine.tally()).await.unwrap_or(Ok(Vec::new())) {
        page.head("bates_documents", "Documents and reservations that are kept, by state.");
        for (series, state, count) in tally {
            page.line("bates_documents", &format!("{{series=\"{series}\",state=\"{state}\"}}"), count);
        }
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.0)
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, help: &str) {
        let kind = match name {
            LATENCY => "histogram",
            _ if name.ends_with("_total") => "counter",
            _ => "gauge",
        };
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("a text is written into memory");
    }

    /// A value, with its labels in braces if it has some.
    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        writeln!(self.0, "{name}{labels} {value}").expect("a text is written into memory");
    }

    fn table<T>(&mut self, metrics: &[Metric<T>], series: &[(&str, T)]) {
        for Metric(name, help, of) in metrics {
            self.head(name, help);
            for (series, seen) in series {
                self.line(name, &format!("{{series=\"{series}\"}}"), of(seen));
            }
        }
    }
}

/// Name, help, and the value for a series.
struct Metric<T>(&'static str, &'static str, fn(&T) -> u64);

struct Seen<'a> {
    counts: &'a Counts,
    level: u64,
    scopes: u64,
    capacity: u64,
}

fn write_series<S: Store>(page: &mut Page, machine: &Machine<S>) {
    const REMAINING: &str = "The fewest numbers left in any scope that this node knows of.";
    let metrics: [Metric<Seen<'_>>; 7] = [
        Metric("bates_issued_total", "Numbers that were issued.", |of| of.counts.issued()),
        Metric("bates_waits_total", "Requests that had to wait for the store.", |of| of.counts.waits()),
        Metric("bates_refills_total", "Grants of the store.", |of| of.counts.refills()),
        Metric("bates_refill_errors_total", "Grants that the store refused or failed to make.", |of| {
            of.counts.refill_errors()
        }),
        Metric("bates_level", "Numbers that are granted and held in memory.", |of| of.level),
        Metric("bates_scopes_in_memory", "Scopes that are in memory.", |of| of.scopes),
        Metric("bates_capacity", "Numbers that each scope of a series has in all.", |of| of.capacity),
    ];
    let (registry, levels, now) = (machine.registry(), machine.levels(), machine.now());
    let seen = registry.entries().map(|entry| {
        let name = entry.series().name();
        let Level { held, scopes } = levels.get(name).copied().unwrap_or_default();
        let (counts, level, capacity) = (entry.counts(), entry.numbers_in(held), entry.capacity());
        (name.as_str(), Seen { counts, level, scopes, capacity })
    });
    page.table(&metrics, &seen.collect::<Vec<_>>());
    let left =
        registry.entries().filter_map(|entry| Some((entry.series().name().as_str(), entry.remaining(now)?)));
    page.table(&[Metric("bates_remaining", REMAINING, |left| *left)], &left.collect::<Vec<_>>());
}

fn write_pools<S: Store>(page: &mut Page, machine: &Machine<S>) {
    const REDIS_UP: &str = "Whether the Redis server of the pools answered when it was last asked.";
    let metrics: [Metric<PoolTally>; 7] = [
        Metric("bates_pool_redis_up", REDIS_UP, |of| of.is_up.into()),
        Metric("bates_pools", "Shared pools that are kept.", |of| of.pools),
        Metric("bates_pool_level", "Numbers in all shared pools of a series.", |of| of.level),
        Metric("bates_pools_low", "Shared pools that are at their watermark or below.", |of| of.low),
        Metric("bates_pool_pushed_total", "Numbers that this node pushed into shared pools.", |of| of.pushed),
        Metric("bates_pool_renewals_total", "Shared pools that this node began anew.", |of| of.renewed),
        Metric("bates_pool_fill_errors_total", "Fillings of shared pools that failed.", |of| of.failed),
    ];
    let registry = machine.registry();
    let names = registry.entries().map(|entry| entry.series().name());
    let kept = names.filter_map(|name| machine.kept(name).map(|kept| (name.as_str(), kept.tally())));
    let kept: Vec<_> = kept.collect();
    if !kept.is_empty() {
        page.table(&metrics, &kept);
    }
}

fn write_latency<S: Store>(page: &mut Page, machine: &Machine<S>) {
    page.head(LATENCY, "How long the store took to grant numbers or to number a document.");
    let latency = machine.latency();
    let cumulative = latency.cumulative();
    let [.., all] = cumulative;
    for (bound, count) in LATENCY_BOUNDS_MICROS.iter().zip(cumulative) {
        let (whole, rest) = (bound / 1_000_000, bound % 1_000_000);
        page.line(LATENCY, &format!("_bucket{{le=\"{whole}.{rest:06}\"}}"), count);
    }
    page.line(LATENCY, "_bucket{le=\"+Inf\"}", all);
    page.line(LATENCY, "_sum", latency.sum().as_secs_f64());
    page.line(LATENCY, "_count", all);
}
