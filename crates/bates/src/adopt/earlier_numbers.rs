//! Reads the numbers of an earlier system, from a file or from the tables of an OpenG2P id-generator. Must never
//! write there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bates_core::{Machine, Position, PositionRange, ScopeKey, SeriesEntry, Store};
use bates_pattern::ParsedIdentifier;
use bates_postgres::{Address, IdPools, OpenError};

use super::AdoptArgs;
use crate::output;

const UNRECOGNIZED_SHOWN: u64 = 5;

/// The numbers of one series.
pub(super) struct EarlierNumbers {
    pub(super) entry: Arc<SeriesEntry>,
    pub(super) source: String,
    pub(super) scopes: BTreeMap<ScopeKey, Positions>,
    pub(super) count: u64,
    /// Texts that are not numbers of the series.
    pub(super) unrecognized: u64,
}

#[derive(Default)]
pub(super) struct Positions {
    pub(super) highest: u64,
    /// Filled only in a shuffled series.
    pub(super) each: Vec<Position>,
}

/// `store_database` is the database of the store, if it has one.
pub(super) async fn read<S: Store>(
    machine: &Machine<S>,
    args: &AdoptArgs,
    store_database: Option<&Address>,
) -> Result<Vec<EarlierNumbers>> {
    let named = match &args.series {
        Some(name) => Some(machine.series(name).with_context(|| format!("unknown series {name:?}"))?),
        None => None,
    };
    if let (Some(file), Some(entry)) = (&args.file, &named) {
        return Ok(vec![read_file(file, args.column.as_deref(), entry.clone())?]);
    }
    let given = args.url.as_deref().map(Address::parse).transpose().map_err(OpenError::from)?;
    let Some(address) = given.as_ref().or(store_database) else {
        bail!("the store is a folder: name the database of the id-generator with --url");
    };
    let pools = IdPools::connect(address).await?;
    let all = || machine.registry().entries().cloned().collect();
    let entries: Vec<Arc<SeriesEntry>> = named.map_or_else(all, |entry| vec![entry]);
    let mut read = Vec::new();
    for entry in entries {
        let id_type = entry.series().name().clone();
        if pools.has_taken(id_type.as_str()).await?.is_some() {
            let mut earlier = EarlierNumbers::new(entry, format!("table id_pool_{id_type}"));
            pools.taken(id_type.as_str(), |text| earlier.add(text)).await?;
            read.push(earlier);
        }
    }
    match &args.series {
        Some(id_type) if read.is_empty() => bail!("the database has no table id_pool_{id_type}"),
        None if read.is_empty() => bail!("the database has no table id_pool_… of any series"),
        _ => Ok(read),
    }
}

fn read_file(file: &Path, column: Option<&str>, entry: Arc<SeriesEntry>) -> Result<EarlierNumbers> {
    let mut earlier = EarlierNumbers::new(entry, file.display().to_string());
    let cannot_read = || format!("cannot read {}", file.display());
    if file.extension().is_some_and(|extension| extension == "csv") {
        let mut rows = csv::Reader::from_path(file).with_context(cannot_read)?;
        let heads = rows.headers()?.clone();
        let column = match column {
            Some(name) => heads.iter().position(|head| head == name).with_context(|| {
                let heads: Vec<&str> = heads.iter().collect();
                format!("{} has no column {name:?}; it has {}", file.display(), heads.join(", "))
            })?,
            None => 0,
        };
        for row in rows.records() {
            earlier.add(row?.get(column).unwrap_or_default());
        }
    } else {
        for line in BufReader::new(File::open(file).with_context(cannot_read)?).lines() {
            earlier.add(line?.trim());
        }
    }
    Ok(earlier)
}

impl EarlierNumbers {
    fn new(entry: Arc<SeriesEntry>, source: String) -> Self {
        Self { entry, source, scopes: BTreeMap::new(), count: 0, unrecognized: 0 }
    }

    pub(super) fn is_shuffled(&self) -> bool {
        self.entry.spec().shuffled
    }

    pub(super) fn overlaps(&self, scope: &ScopeKey, range: PositionRange) -> bool {
        let Some(positions) = self.scopes.get(scope) else { return false };
        if self.is_shuffled() {
            positions.each.iter().any(|position| (range.from()..range.to()).contains(&position.value()))
        } else {
            range.from() <= positions.highest
        }
    }

    fn add(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let (entry, is_shuffled) = (&self.entry, self.is_shuffled());
        let parsed = entry.series().pattern().parse(text).ok();
        // A number that does not show its whole scope could belong to several scopes.
        let parsed = parsed.filter(|parsed| parsed.parameters().count() == entry.parameters().count());
        let locate = |it: ParsedIdentifier<'_, '_>| {
            Some((ScopeKey::new(it.parameters(), it.period()).ok()?, it.position()))
        };
        let Some((scope, position)) = parsed.and_then(locate) else {
            self.unrecognized += 1;
            if self.unrecognized <= UNRECOGNIZED_SHOWN {
                output::print_note(&format!("not a number of the series: {:?}", output::sanitize(text)));
            }
            return;
        };
        self.count += 1;
        let positions = self.scopes.entry(scope).or_default();
        positions.highest = position.value().max(positions.highest);
        if is_shuffled {
            positions.each.push(position);
        }
    }
}
