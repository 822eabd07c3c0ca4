//! Prints a list from a server page by page: as a table, JSON lines or CSV.

use bates_client::{Page, Pages};
use clap::Args;
use serde::Serialize;

use super::server::ServerArgs;
use crate::output::{self, Output};
use crate::scope;

pub(super) const PAGE: usize = 10_000;

/// A row of a table shows the beginning of a long text.
const CELL_CHARACTERS_MAX: usize = 60;

pub(super) fn shortened(text: String) -> String {
    match text.char_indices().nth(CELL_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Which items to list, and how.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only this series
    pub(super) series: Option<String>,

    /// Only this scope
    #[arg(value_name = "NAME=VALUE")]
    pub(super) parameters: Vec<String>,

    /// Only this period
    #[arg(long)]
    pub(super) period: Option<String>,

    /// Print JSON, one item per line
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print CSV
    #[arg(long)]
    csv: bool,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

impl ListArgs {
    pub(super) fn format<T>(&self, columns: &'static str, row: fn(&T) -> String) -> Format<T> {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv(columns, row),
            _ => Format::Table,
        }
    }
}

pub(super) enum Format<T> {
    Table,
    Json,
    /// The header, and the text of a row.
    Csv(&'static str, fn(&T) -> String),
}

pub(super) fn add_filters<'a, P: Page>(
    pages: Pages<P>,
    filters: impl IntoIterator<Item = (&'a str, &'a Option<String>)>,
    parameters: &'a [String],
) -> anyhow::Result<Pages<P>> {
    let given = filters.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let pairs = given.chain(scope::pairs(parameters)?);
    Ok(pairs.fold(pages, |pages, (name, value)| pages.filter(name, value)))
}

/// An item may have several rows in the table.
pub(super) async fn print<P: Page<Item: Serialize>, const COLUMNS: usize>(
    out: &mut Output,
    pages: &mut Pages<P>,
    limit: Option<usize>,
    format: Format<P::Item>,
    heads: [&str; COLUMNS],
    rows_of: impl Fn(P::Item) -> Vec<[String; COLUMNS]>,
) -> anyhow::Result<()> {
    let mut left = limit.unwrap_or(usize::MAX);
    let mut rows = vec![heads.map(str::to_owned)];
    if let Format::Csv(columns, _) = format {
        writeln!(out, "{columns}")?;
    }
    while left > 0
        && let Some(items) = pages.next_page().await?
    {
        for item in items.into_iter().take(left) {
            left -= 1;
            match format {
                Format::Table => rows.extend(rows_of(item)),
                Format::Json => out.print_json(&item)?,
                Format::Csv(_, row) => writeln!(out, "{}", row(&item))?,
            }
        }
    }
    if let Format::Table = format { output::print_table(out, &rows) } else { Ok(()) }
}
