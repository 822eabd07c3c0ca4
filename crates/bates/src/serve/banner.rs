//! The lines that a server prints once it listens.

use std::net::SocketAddr;

use anyhow::Result;
use bates_core::{Machine, SeriesEntry, Store, StoreTotals};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::config::{Config, address_or_off};
use crate::output::{Output, count_of, group_digits};

/// Prints where the server listens, and commands to try with its series.
pub(super) fn print<S: Store>(
    out: &mut Output,
    machine: &Machine<S>,
    config: &Config,
    StoreFound { id, held }: &StoreFound,
    http: Option<&TcpListener>,
    resp: Option<&TcpListener>,
) -> Result<()> {
    let address = |listener: Option<&TcpListener>| listener.map(TcpListener::local_addr).transpose();
    let (http, resp) = (address(http)?, address(resp)?);
    let file = config.file.as_ref().map_or("built in".into(), |file| file.display().to_string());
    writeln!(out, "bates {} is serving numbers", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "  HTTP            {}", address_or_off(http))?;
    writeln!(out, "  Redis protocol  {}", address_or_off(resp))?;
    if let Some(files) = &config.tls {
        writeln!(out, "  TLS             {}", files.certificate.display())?;
    }
    writeln!(out, "  store           {}, {held}", config.store)?;
    writeln!(out, "  store_id        {id}")?;
    writeln!(out, "  configuration   {file}")?;
    writeln!(out, "try:")?;
    // HTTP shows the series with the fewest parameters, RESP those with keys.
    let (registry, is_open, is_tls) = (machine.registry(), config.access.is_open(), config.tls.is_some());
    let simplest = registry.entries().min_by_key(|entry| entry.parameters().count());
    let http_line = http.zip(simplest).map(|(http, entry)| http_example(entry, http, is_open, is_tls));
    let redis_lines = registry.entries().filter_map(|entry| redis_example(entry, resp?, is_open, is_tls));
    for line in http_line.into_iter().chain(redis_lines).take(3) {
        writeln!(out, "  {line}")?;
    }
    out.flush()
}

/// What a start found, by which an operator sees at once that it is another store.
pub(super) struct StoreFound {
    id: Uuid,
    held: String,
}

impl StoreFound {
    pub(super) async fn look_at(store: &impl Store, is_new: bool) -> Result<Self> {
        let StoreTotals { series, scopes, granted } = store.totals().await?;
        let (series, scopes) = (group_digits(series), count_of(scopes, "scope"));
        let granted = granted.map(|granted| format!(", {} granted", count_of(granted, "number")));
        let held = if is_new {
            "new".to_owned()
        } else {
            format!("with {series} series, {scopes}{}", granted.unwrap_or_default())
        };
        Ok(Self { id: store.identity(), held })
    }
}

fn http_example(entry: &SeriesEntry, http: SocketAddr, is_open: bool, is_tls: bool) -> String {
    let header = if is_open { "" } else { " -H \"Authorization: Bearer $BATES_SECRET\"" };
    let scope: String = entry.parameters().flat_map(|name| ["&", name, "=", "X"]).collect();
    let name = entry.series().name();
    let scheme = if is_tls { "https" } else { "http" };
    format!("curl -X POST{header} '{scheme}://{http}/v1/series/{name}/next?count=3{scope}'")
}

fn redis_example(entry: &SeriesEntry, resp: SocketAddr, is_open: bool, is_tls: bool) -> Option<String> {
    let password = if is_open { "" } else { " -a \"$BATES_SECRET\"" };
    let key = entry.key()?.to_string();
    let key = entry.parameters().fold(key, |key, name| key.replace(&format!("{{{name}}}"), "X"));
    let (command, count) = if entry.numbers_are_positions() { ("INCR", "") } else { ("LPOP", " 3") };
    let tls = if is_tls { " --tls" } else { "" };
    Some(format!("redis-cli{tls} -p {}{password} {command} {key}{count}", resp.port()))
}
