//! `bates check`: explains a configuration.

mod callers;

use anyhow::{Result, bail};
use bates_api::SeriesDescription;
use bates_core::{AuditPolicy, FillAmount, ListValue, Promise, SeriesSpec};
use bates_pattern::{Capacity, Pattern, Position, Scope};
use bates_server::Tls;
use clap::Args;
use serde::Serialize;

use crate::config::{Config, ConfigArgs, SeriesPool, StoreLocation, address_or_off};
use crate::output::{FAINT, GOOD, Output, count_of, group_digits, sanitize};

const SAMPLES: usize = 3;

/// Explain the configuration, or report every mistake in it
///
/// Reads the file and the environment as `bates serve` does, and changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates check\n  bates check --config /etc/bates.yaml --json")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Print JSON: a series, token, offered sink or offered pool per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct SeriesReport<'s> {
    series: &'s str,
    pattern: &'s str,
    promise: &'static str,
    order: &'static str,
    start: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    parameters: Vec<String>,
    reset: String,
    samples: Vec<String>,
    /// `None` if each scope has its own.
    capacity: Option<u64>,
    capacity_is_estimate: bool,
    /// Numbers of a scope that a crash may skip: while it is new, and at most.
    crash_skips: (u64, u64),
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<String>,
    value: &'static str,
    time_zone: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sink: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<String>,
}

impl CheckArgs {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        config.tls.clone().map(Tls::open).transpose()?;
        if !self.json {
            let file = config.file.as_ref().map_or("built in".into(), |file| file.display().to_string());
            let is_open = config.access.is_open();
            let access = if is_open { "none: any client that can connect is served" } else { "is set" };
            writeln!(out, "configuration   {file}")?;
            writeln!(out, "data            {}", config.store)?;
            writeln!(out, "HTTP            {}", address_or_off(config.http))?;
            writeln!(out, "Redis protocol  {}", address_or_off(config.resp))?;
            writeln!(out, "secret          {access}")?;
            if let Some(files) = &config.tls {
                writeln!(out, "TLS             {}", files.certificate.display())?;
            }
        }
        for spec in &config.series {
            let report = describe_series(spec, &config)?;
            if self.json { out.print_json(&report)? } else { print(out, &report)? }
        }
        callers::print(out, &config, self.json)
    }
}

fn describe_series<'s>(spec: &'s SeriesSpec, config: &Config) -> Result<SeriesReport<'s>> {
    let (sink, documents) = (config.sinks.get(&spec.name), config.document_sources.get(&spec.name));
    let (pattern, start) = spec.check()?;
    let capacity = pattern.capacity().ok();
    let all = capacity.map_or(u64::MAX, Capacity::count);
    let skipped = crash_skips(spec, all, matches!(config.store, StoreLocation::Postgres(..)));
    if all == 0 {
        bail!("series {:?}: its rules reject every number", spec.name.as_str());
    }
    Ok(SeriesReport {
        series: spec.name.as_str(),
        pattern: &spec.template,
        promise: spec.promise.name(),
        order: if spec.shuffled { "shuffled" } else { "counting" },
        start: start.value(),
        key: spec.key.as_ref().map(ToString::to_string),
        parameters: spec.parameters(&pattern),
        reset: spec.reset.to_string(),
        samples: samples(&pattern, start),
        // Positions below the start are not issued. With rules, they are within the margin of the estimate.
        capacity: capacity.map(|c| {
            if c.is_exact() && spec.reject.is_empty() { c.count() - start.value() } else { c.count() }
        }),
        capacity_is_estimate: capacity.is_some_and(|capacity| !capacity.is_exact()),
        crash_skips: skipped,
        rules: describe_rules(spec)?,
        value: if spec.value == ListValue::Seq { "seq" } else { "id" },
        time_zone: &spec.time_zone,
        sink: sink.map(|sink| anyhow::Ok(sink.open()?.describe())).transpose()?,
        documents: documents.map(bates_sinks::DocumentSourceDescription::describe).transpose()?,
        pool: config.pools.iter().find(|of| of.series == spec.name).map(describe_pool).transpose()?,
        audit: describe_audit(spec.audit),
    })
}

fn describe_audit(audit: AuditPolicy) -> Option<String> {
    let duration = match audit.retention() {
        None => "forever".to_owned(),
        Some(retention) => format!("for {}", count_of(retention.as_secs() / 3_600, "hour")),
    };
    audit.is_on().then(|| format!("records who took which numbers, and keeps the records {duration}"))
}

fn describe_pool(SeriesPool { pool, settings, .. }: &SeriesPool) -> Result<String> {
    let (key, server) = (&settings.key, pool.address()?);
    Ok(format!("{key} on Redis at {server}, {}", describe_fill(&(settings.low, settings.amount))))
}

fn describe_fill((low, amount): &(u64, FillAmount)) -> String {
    let amount = match *amount {
        FillAmount::UpTo(size) => format!("filled up to {}", group_digits(size)),
        FillAmount::Batch(count) => format!("{} more", group_digits(count)),
    };
    format!("{amount} when {} are left", group_digits(*low))
}

fn crash_skips(spec: &SeriesSpec, capacity: u64, is_shared: bool) -> (u64, u64) {
    let limits = spec.limits.within(capacity);
    match spec.promise {
        Promise::Gapless => (0, 0),
        // Nodes on a shared store hold no numbers of an ordered series in memory.
        Promise::Ordered if is_shared => (0, 0),
        Promise::Unique | Promise::Ordered => (limits.lease_min, limits.crash_skip_max()),
    }
}

fn describe_rules(spec: &SeriesSpec) -> Result<Vec<String>> {
    let described: SeriesDescription = serde_json::from_str(&spec.description)?;
    let words = described.restrict.join(", ");
    let words = (!words.is_empty()).then(|| format!("without {words}"));
    Ok(described.reject.into_iter().chain(words).collect())
}

fn describe_crash(skips: (u64, u64)) -> String {
    match skips {
        (0, _) => "skips nothing".into(),
        (first, most) => {
            let (first, most) = (group_digits(first), group_digits(most));
            format!("skips up to {first} numbers of a new scope, {most} of a busy one")
        }
    }
}

fn print(out: &mut Output, report: &SeriesReport<'_>) -> Result<()> {
    let SeriesReport { series, pattern, promise, order, start, reset, .. } = report;
    writeln!(out, "\n{GOOD}{series}{GOOD:#}  {promise}, {order} from {start}")?;
    let is_shuffled = *order == "shuffled";
    let note = if is_shuffled { " (in an example order: the key is created at first use)" } else { "" };
    let samples = match &*report.samples.join("  ") {
        "" => "none within the first million positions: a request would be refused".into(),
        samples => format!("{samples}{note}"),
    };
    let about = if report.capacity_is_estimate { "about " } else { "" };
    let capacity = match report.capacity {
        Some(count) => format!("{about}{} per scope", count_of(count, "number")),
        None => "differs by scope: the check characters cover the parameters".into(),
    };
    let lines = [
        ("pattern", Some((*pattern).to_owned())),
        ("key", report.key.clone()),
        ("value", (report.value == "seq").then(|| "seq: LPOP gives the bare sequence part".into())),
        ("reset", (reset != "never").then(|| format!("{reset}, in {}", report.time_zone))),
        ("rules", (!report.rules.is_empty()).then(|| report.rules.join("; "))),
        ("samples", Some(samples)),
        ("capacity", Some(capacity)),
        ("a crash", Some(describe_crash(report.crash_skips))),
        ("sink", report.sink.clone()),
        ("documents", report.documents.as_ref().map(|at| format!("compared with those in {at}"))),
        ("audit", report.audit.clone()),
        ("pool", report.pool.clone()),
    ];
    for (name, text) in lines.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
        writeln!(out, "  {FAINT}{name:<9}{FAINT:#} {}", sanitize(text))?;
    }
    Ok(())
}

fn samples(pattern: &Pattern, start: Position) -> Vec<String> {
    let Some(scope) = sample_scope(pattern) else { return Vec::new() };
    let end = Position::new(start.value().saturating_add(1_000_000)).unwrap_or(Position::MAX);
    let mut walk = scope.accepted(start, end);
    let (mut samples, mut text) = (Vec::new(), Vec::new());
    while samples.len() < SAMPLES && walk.next_into(&mut text).is_some() {
        samples.push(String::from_utf8_lossy(&text).into_owned());
        text.clear();
    }
    samples
}

/// Finds parameter values that the pattern accepts, by trial.
fn sample_scope(pattern: &Pattern) -> Option<Scope> {
    let today = Some(jiff::Zoned::now().date());
    let names: Vec<&str> = pattern.parameters().collect();
    let mut values: Vec<String> = names.iter().map(|name| name.to_uppercase()).collect();
    for at in 0..names.len() {
        let own = [values[at].clone(), names[at].to_owned()];
        let of = |text: &'static str| (1..=20).map(move |length| text.chars().cycle().take(length).collect());
        let alphabets = ["ABCDEFGHIJKLMNOPQRSTUVWXYZ", "1234567890", "abcdefghijklmnopqrstuvwxyz"];
        let mut candidates = own.into_iter().chain(alphabets.into_iter().flat_map(of));
        // An error about another parameter says nothing about this value.
        values[at] = candidates.find(|value| {
            let pairs = names.iter().enumerate().map(|(i, name)| (*name, if i == at { value.as_str() } else { values[i].as_str() }));
            !matches!(pattern.scope(pairs, today), Err(bates_pattern::ScopeError::InvalidValue { name, .. }) if *name == *names[at])
        })?;
    }
    pattern.scope(names.iter().zip(&values).map(|(name, value)| (*name, value.as_str())), today).ok()
}
