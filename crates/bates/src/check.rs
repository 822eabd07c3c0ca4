//! `bates check`: what a configuration amounts to.

use anyhow::{Result, bail};
use bates_api::Description;
use bates_core::{Amount, Auditing, Promise, SeriesSpec, Value};
use bates_pattern::{Capacity, Pattern, Position, Scope};
use clap::Args;
use serde::Serialize;

use crate::config::{Config, ConfigArgs, PoolOf, StoreAt, address_or_off};
use crate::output::{FAINT, GOOD, Output, counted, grouped, printable};

const SAMPLES: usize = 3;

/// Explain the configuration, or tell everything that is wrong with it
///
/// Reads the file and the environment as `bates serve` would, and touches nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates check\n  bates check --config /etc/bates.yaml --json")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Print JSON, one series a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Told<'s> {
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
    /// `null` where each scope has its own.
    capacity: Option<u64>,
    capacity_is_estimate: bool,
    /// Numbers of a scope that a crash may skip: just after its start, and at most.
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
        if !self.json {
            let file = config.file.as_ref().map_or("built in".into(), |file| file.display().to_string());
            let access = if config.access.is_open() { "none: whoever can connect may ask" } else { "is set" };
            writeln!(out, "configuration   {file}")?;
            writeln!(out, "data            {}", config.store)?;
            writeln!(out, "HTTP            {}", address_or_off(config.http))?;
            writeln!(out, "Redis protocol  {}", address_or_off(config.resp))?;
            writeln!(out, "secret          {access}")?;
        }
        for spec in &config.series {
            let told = tell(spec, &config)?;
            if self.json { out.json(&told)? } else { print(out, &told)? }
        }
        Ok(())
    }
}

fn tell<'s>(spec: &'s SeriesSpec, config: &Config) -> Result<Told<'s>> {
    let (sink, documents) = (config.sinks.get(&spec.name), config.documents.get(&spec.name));
    let (pattern, start) = spec.check()?;
    let capacity = pattern.capacity().ok();
    let skipped = skipped(spec, matches!(config.store, StoreAt::Postgres(..)));
    let all = capacity.map_or(u64::MAX, Capacity::count);
    if all == 0 {
        bail!("series {:?}: its rules reject every number", spec.name.as_str());
    }
    Ok(Told {
        series: spec.name.as_str(),
        pattern: &spec.template,
        promise: spec.promise.name(),
        order: if spec.shuffled { "shuffled" } else { "counting" },
        start: start.value(),
        key: spec.key.as_ref().map(ToString::to_string),
        parameters: spec.parameters(&pattern),
        reset: spec.reset.to_string(),
        samples: samples(&pattern, start),
        // Positions below the start are not issued; under rules their share is within the estimate.
        capacity: capacity.map(|c| {
            if c.is_exact() && spec.reject.is_empty() { c.count() - start.value() } else { c.count() }
        }),
        capacity_is_estimate: capacity.is_some_and(|capacity| !capacity.is_exact()),
        crash_skips: (skipped.0.min(all), skipped.1.min(all)),
        rules: rules(spec)?,
        value: if spec.value == Value::Seq { "seq" } else { "id" },
        time_zone: &spec.time_zone,
        sink: sink.map(|sink| anyhow::Ok(sink.open()?.describe())).transpose()?,
        documents: documents.map(bates_sinks::DocumentsDescription::describe).transpose()?,
        pool: config.pools.iter().find(|of| of.series == spec.name).map(pool).transpose()?,
        audit: audit(spec.audit),
    })
}

fn audit(audit: Auditing) -> Option<String> {
    let kept = match audit.retention() {
        None => "for ever".to_owned(),
        Some(retention) => format!("for {}", counted(retention.as_secs() / 3_600, "hour")),
    };
    audit.is_on().then(|| format!("who took which numbers is kept {kept}"))
}

fn pool(PoolOf { pool, settings, .. }: &PoolOf) -> Result<String> {
    let (low, key, server) = (grouped(settings.low), &settings.key, pool.address()?);
    let amount = match settings.amount {
        Amount::UpTo(size) => format!("filled up to {}", grouped(size)),
        Amount::Batch(count) => format!("{} more", grouped(count)),
    };
    Ok(format!("{key} on Redis at {server}, {amount} when {low} are left"))
}

fn skipped(spec: &SeriesSpec, is_shared: bool) -> (u64, u64) {
    match spec.promise {
        Promise::Gapless => (0, 0),
        // A shared store holds nothing of an ordered series in memory.
        Promise::Ordered if is_shared => (0, 0),
        Promise::Unique | Promise::Ordered => {
            (spec.limits.lease_min, spec.limits.lease_max.saturating_mul(2))
        }
    }
}

fn rules(spec: &SeriesSpec) -> Result<Vec<String>> {
    let described: Description = serde_json::from_str(&spec.description)?;
    let words = described.restrict.join(", ");
    let words = (!words.is_empty()).then(|| format!("without {words}"));
    Ok(described.reject.into_iter().chain(words).collect())
}

fn crash(skips: (u64, u64)) -> String {
    match skips {
        (0, _) => "skips nothing".into(),
        (first, most) => {
            let (first, most) = (grouped(first), grouped(most));
            format!("skips up to {first} numbers of a scope just begun, {most} of a busy one")
        }
    }
}

fn print(out: &mut Output, told: &Told<'_>) -> Result<()> {
    let Told { series, pattern, promise, order, start, reset, .. } = told;
    writeln!(out, "\n{GOOD}{series}{GOOD:#}  {promise}, {order} from {start}")?;
    let show =
        if *order == "shuffled" { " (in an order for show: the key is made with the first use)" } else { "" };
    let samples = match told.samples.join("  ") {
        none if none.is_empty() => {
            "none within the first million positions, so a request would be refused".into()
        }
        samples => format!("{samples}{show}"),
    };
    let about = if told.capacity_is_estimate { "about " } else { "" };
    let capacity = match told.capacity {
        Some(count) => format!("{about}{} a scope", counted(count, "number")),
        None => "another one in each scope: its check characters cover the parameters".into(),
    };
    let lines = [
        ("pattern", Some((*pattern).to_owned())),
        ("key", told.key.clone()),
        ("value", (told.value == "seq").then(|| "seq: LPOP gives the bare sequence part".into())),
        ("reset", (reset != "never").then(|| format!("{reset}, in {}", told.time_zone))),
        ("rules", (!told.rules.is_empty()).then(|| told.rules.join("; "))),
        ("samples", Some(samples)),
        ("capacity", Some(capacity)),
        ("a crash", Some(crash(told.crash_skips))),
        ("sink", told.sink.clone()),
        ("documents", told.documents.as_ref().map(|at| format!("are compared with those in {at}"))),
        ("audit", told.audit.clone()),
        ("pool", told.pool.clone()),
    ];
    lines
        .iter()
        .filter_map(|(name, text)| Some((name, text.as_ref()?)))
        .try_for_each(|(name, text)| writeln!(out, "  {FAINT}{name:<9}{FAINT:#} {}", printable(text)))
}

fn samples(pattern: &Pattern, start: Position) -> Vec<String> {
    let Some(scope) = made_up(pattern) else { return Vec::new() };
    let mut walk = scope
        .accepted(start, Position::new(start.value().saturating_add(1_000_000)).unwrap_or(Position::MAX));
    let (mut samples, mut text) = (Vec::new(), Vec::new());
    while samples.len() < SAMPLES && walk.next_into(&mut text).is_some() {
        samples.push(String::from_utf8_lossy(&text).into_owned());
        text.clear();
    }
    samples
}

/// Finds values that the rules admit by trying.
fn made_up(pattern: &Pattern) -> Option<Scope> {
    let today = Some(jiff::Zoned::now().date());
    let names: Vec<&str> = pattern.parameters().collect();
    let mut values: Vec<String> = names.iter().map(|name| name.to_uppercase()).collect();
    for at in 0..names.len() {
        let own = [values[at].clone(), names[at].to_owned()];
        let of = |text: &'static str| (1..=20).map(move |length| text.chars().cycle().take(length).collect());
        let alphabets = ["ABCDEFGHIJKLMNOPQRSTUVWXYZ", "1234567890", "abcdefghijklmnopqrstuvwxyz"];
        let mut tries = own.into_iter().chain(alphabets.into_iter().flat_map(of));
        // A refusal of another parameter is another error.
        values[at] = tries.find(|value| {
            let pairs = names.iter().enumerate().map(|(i, name)| (*name, if i == at { value.as_str() } else { values[i].as_str() }));
            !matches!(pattern.scope(pairs, today), Err(bates_pattern::ScopeError::Refused { name, .. }) if *name == *names[at])
        })?;
    }
    pattern.scope(names.iter().zip(&values).map(|(name, value)| (*name, value.as_str())), today).ok()
}
