//! Opens a series: checks its description, pins it in the store, and only then uses it.

use std::collections::BTreeSet;
use std::sync::Arc;

use bates_pattern::{Construction, Key, Options, Order, Pattern, Position, Reject};
use jiff::tz::TimeZone;

use super::{
    AcceptedShare, Caching, Definition, Limits, MachineError, MachineResult, Promise, Registry, Series,
    SeriesEntry, SeriesOrigin, SeriesSpec,
};
use crate::runtime::Runtime;
use crate::store::{MeasuredStore, Store, StoreError};

/// Where rules accept fewer than one in this many positions, ranges are not enlarged further.
const POSITIONS_PER_NUMBER_MAX: u64 = 1_000;

const PERMUTATION_KEY_BYTES: usize = 32;

pub(crate) async fn open_all<S: Store>(
    store: &MeasuredStore<S>,
    specs: Vec<SeriesSpec>,
) -> MachineResult<Registry> {
    let mut registry = Registry::default();
    for spec in specs {
        if registry.get(spec.name.as_str()).is_some() {
            return Err(MachineError::Twice(spec.name));
        }
        registry.check_key_is_free(&spec)?;
        registry = registry.with(open_series(store, spec, SeriesOrigin::File, Arc::default()).await?);
    }
    Ok(registry)
}

/// `caching` is that of the earlier ordered series of its name.
pub(crate) async fn open_series<S: Store>(
    store: &MeasuredStore<S>,
    spec: SeriesSpec,
    origin: SeriesOrigin,
    caching: Arc<Caching>,
) -> MachineResult<SeriesEntry> {
    let (spec, accepted, checked) = check_and_count(store.runtime(), spec).await?;
    let fresh_key = if spec.shuffled { Some(fresh_key(store.runtime())?) } else { None };
    let pinned = store.pin(checked.definition, fresh_key).await?;
    let pattern = compile(&spec, pinned_order(&spec, pinned.permutation_key)?)?;
    let limits = limits_in_positions(spec.limits, accepted);
    let caching = match spec.promise {
        Promise::Unique => Arc::default(),
        Promise::Ordered if !store.is_shared() => caching,
        // The store grants each number: nothing that another series of its name left in memory is used.
        Promise::Ordered | Promise::Gapless => Arc::new(Caching::stopped()),
    };
    Ok(SeriesEntry {
        parameters: spec.parameters(&pattern),
        bypasses_hot_path: pattern.needs_date() || spec.audit.is_on(),
        series: Series::new(spec.name.clone(), pattern, spec.promise, checked.start, limits)
            .with_caching(caching),
        counts: store.counts(&spec.name),
        spec,
        origin,
        time_zone: checked.time_zone,
        accepted,
        has_changed_rules: pinned.has_changed_rules,
        document_notify: Arc::default(),
    })
}

fn pinned_order(spec: &SeriesSpec, permutation_key: Option<Vec<u8>>) -> MachineResult<Order> {
    let Some(bytes) = permutation_key else { return Ok(Order::Counting) };
    let key = Key::new(&bytes).map_err(|error| {
        StoreError::Poisoned(format!("the permutation key of {:?}: {error}", spec.name.as_str()).into())
    });
    Ok(Order::Shuffled(key?))
}

/// Checks a description and counts the numbers that its rules accept: on a blocking thread, as it may take a second.
async fn check_and_count(
    runtime: &dyn Runtime,
    spec: SeriesSpec,
) -> MachineResult<(SeriesSpec, AcceptedShare, CheckedSpec)> {
    let checked = runtime.run_blocking(move || {
        let checked = check_spec(&spec)?;
        let accepted = accepted(&checked.pattern);
        if accepted.numbers == 0 {
            return Err(MachineError::Empty(spec.name));
        }
        Ok((spec, accepted, checked))
    });
    checked.await.unwrap_or(Err(MachineError::Stopping))
}

pub(crate) struct CheckedSpec {
    /// Compiled with a placeholder key if it is shuffled.
    pub(crate) pattern: Pattern,
    time_zone: TimeZone,
    definition: Definition,
    pub(crate) start: Position,
}

/// Checks a description before anything is written.
pub(crate) fn check_spec(spec: &SeriesSpec) -> MachineResult<CheckedSpec> {
    let order = if spec.shuffled {
        // Any key shows whether the pattern can be shuffled.
        Order::Shuffled(Key::new(&[0; 16]).expect("sixteen bytes are a key"))
    } else {
        Order::Counting
    };
    let pattern = compile(spec, order)?;
    check_key(spec, &pattern)?;
    check_promise(spec)?;
    check_pool(spec, &pattern)?;
    spec.limits.check().map_err(|problem| MachineError::Limits { series: spec.name.clone(), problem })?;
    let time_zone = TimeZone::get(&spec.time_zone)
        .map_err(|_| MachineError::TimeZone { series: spec.name.clone(), name: spec.time_zone.clone() })?;
    let start = spec.start.unwrap_or_else(|| default_start(&pattern, spec.shuffled));
    if start > pattern.last() {
        let (series, last) = (spec.name.clone(), pattern.last().value());
        return Err(MachineError::Start { series, start: start.value(), last });
    }
    let definition = Definition {
        series: spec.name.clone(),
        template: spec.template.clone(),
        parameters: spec.parameters(&pattern).join(" ").into(),
        shuffled: spec.shuffled,
        start: start.value(),
        reset: spec.reset.to_string().into(),
        // Where no date is shown, the time zone decides nothing and may change.
        time_zone: if pattern.needs_date() { spec.time_zone.clone() } else { "UTC".into() },
        construction: Construction::default().number(),
        promise: Some(spec.promise),
        rules: Some(rules_text(&spec.reject)),
    };
    Ok(CheckedSpec { pattern, time_zone, definition, start })
}

/// Equal texts mean equal rules.
fn rules_text(rules: &Reject) -> Box<str> {
    let digits = rules.digit_rules().map(|digits| (digits.rule_set().name(), digits.limits()));
    format!("rejects {digits:?} {:?}", rules.restricted().collect::<BTreeSet<_>>()).into()
}

fn compile(spec: &SeriesSpec, order: Order) -> MachineResult<Pattern> {
    let options = Options { order, reject: spec.reject.clone(), reset: spec.reset, ..Options::default() };
    let (series, template) = (spec.name.clone(), spec.template.clone());
    let refused = |error| MachineError::Pattern { series, template, error };
    Pattern::compile(&spec.template, options).map_err(refused)
}

/// Refuses promises that could not be kept.
fn check_promise(spec: &SeriesSpec) -> MachineResult<()> {
    let problem = match spec.promise {
        Promise::Ordered | Promise::Gapless if spec.shuffled => {
            "numbers in a shuffled order do not ascend, so the series can only be unique"
        }
        Promise::Gapless if !spec.reject.is_empty() => {
            "a gapless series skips no position, so it cannot reject numbers"
        }
        _ => return Ok(()),
    };
    Err(MachineError::Promise { series: spec.name.clone(), promise: spec.promise, problem })
}

/// The numbers of a pool wait in a list, which keeps no order.
fn check_pool(spec: &SeriesSpec, pattern: &Pattern) -> MachineResult<()> {
    let problem = match spec.promise {
        _ if !spec.has_pool => return Ok(()),
        Promise::Ordered | Promise::Gapless => "a series with a pool must be unique: a list keeps no order",
        Promise::Unique if pattern.needs_date() => {
            "a series that shows a date cannot have a pool: its numbers wait in the list"
        }
        Promise::Unique => return Ok(()),
    };
    Err(MachineError::Pool { series: spec.name.clone(), problem })
}

fn check_key(spec: &SeriesSpec, pattern: &Pattern) -> MachineResult<()> {
    let Some(key) = &spec.key else { return Ok(()) };
    let lacking = pattern.parameters().find(|shown| !key.parameters().any(|named| named == *shown));
    let Some(parameter) = lacking else { return Ok(()) };
    let (series, key) = (spec.name.clone(), key.to_string().into());
    Err(MachineError::KeyLacks { series, key, parameter: parameter.into() })
}

fn accepted(pattern: &Pattern) -> AcceptedShare {
    let positions = pattern.last().value() + 1;
    let capacity = pattern.estimate_capacity();
    let numbers = capacity.map_or(positions, bates_pattern::Capacity::count).min(positions);
    AcceptedShare { numbers, positions }
}

/// Limits count numbers and ranges hold positions: with rejection, a number takes several positions.
fn limits_in_positions(limits: Limits, AcceptedShare { numbers, positions }: AcceptedShare) -> Limits {
    let several = (positions / numbers.max(1)).clamp(1, POSITIONS_PER_NUMBER_MAX);
    Limits {
        lease_min: limits.lease_min.saturating_mul(several),
        lease_max: limits.lease_max.saturating_mul(several),
        ..limits
    }
}

/// People count from 1. In a shuffled order position 0 reads like any other, and would be missing at the end.
fn default_start(pattern: &Pattern, shuffled: bool) -> Position {
    Position::new(u64::from(pattern.counts_in_decimal() && !shuffled)).unwrap_or(Position::MIN)
}

fn fresh_key(runtime: &dyn Runtime) -> MachineResult<Vec<u8>> {
    let mut key = vec![0; PERMUTATION_KEY_BYTES];
    runtime.fill_random(&mut key).map_err(MachineError::NoRandomness)?;
    Ok(key)
}
