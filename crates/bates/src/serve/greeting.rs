//! What a server says when it listens: where, with what, and lines to try that its series can answer.

use std::net::SocketAddr;

use bates_core::{Entry, Machine, Store};
use tokio::net::TcpListener;

use crate::config::Config;
use crate::output::Output;

const TRIES_MAX: usize = 3;

pub(super) fn print<S: Store>(
    out: &mut Output,
    machine: &Machine<S>,
    config: &Config,
    http: Option<&TcpListener>,
    resp: Option<&TcpListener>,
) -> anyhow::Result<()> {
    let address = |listener: Option<&TcpListener>| listener.map(TcpListener::local_addr).transpose();
    let (http, resp) = (address(http)?, address(resp)?);
    let shown = |address: Option<SocketAddr>| address.map_or("off".into(), |address| address.to_string());
    let file = config.file.as_ref().map_or("built in".into(), |file| file.display().to_string());
    writeln!(out, "bates {} hands out numbers", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "  HTTP            {}", shown(http))?;
    writeln!(out, "  Redis protocol  {}", shown(resp))?;
    writeln!(out, "  data            {}", config.store)?;
    writeln!(out, "  configuration   {file}")?;
    writeln!(out, "try:")?;
    // One without parameters is asked for over HTTP in the shortest way; the others by their keys.
    let (registry, is_open) = (machine.registry(), config.access.is_open());
    let simple = registry.entries().min_by_key(|entry| entry.parameters().count());
    let over_http = http.zip(simple).map(|(http, entry)| by_http(entry, http, is_open));
    let keyed = registry.entries().filter_map(|entry| by_key(entry, resp?, is_open));
    for line in over_http.into_iter().chain(keyed).take(TRIES_MAX) {
        writeln!(out, "  {line}")?;
    }
    out.flush()
}

fn by_http(entry: &Entry, http: SocketAddr, is_open: bool) -> String {
    let header = if is_open { "" } else { " -H \"Authorization: Bearer $BATES_SECRET\"" };
    let scope: String = entry.parameters().flat_map(|name| ["&", name, "=", "X"]).collect();
    let name = entry.series().name();
    format!("curl -X POST{header} 'http://{http}/v1/series/{name}/next?count=3{scope}'")
}

fn by_key(entry: &Entry, resp: SocketAddr, is_open: bool) -> Option<String> {
    let password = if is_open { "" } else { " -a \"$BATES_SECRET\"" };
    let key = entry.key()?.to_string();
    let key = entry.parameters().fold(key, |key, name| key.replace(&format!("{{{name}}}"), "X"));
    let (command, count) = if entry.counts_plainly() { ("INCR", "") } else { ("LPOP", " 3") };
    Some(format!("redis-cli -p {}{password} {command} {key}{count}", resp.port()))
}
