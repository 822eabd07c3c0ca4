//! What a server says when it listens: where, with what, and lines to try that its series can answer.

use std::net::SocketAddr;
use std::path::Path;

use bates_core::{Entry, Machine, Store};
use tokio::net::TcpListener;

use crate::config::StoreAt;
use crate::output::Output;

/// Lines to try.
const TRIES_MAX: usize = 3;

/// What is said besides the series.
pub(super) struct Greeting<'a> {
    pub(super) store: &'a StoreAt,
    pub(super) file: Option<&'a Path>,
    /// Whether no secret is needed.
    pub(super) is_open: bool,
}

impl Greeting<'_> {
    pub(super) fn print<S: Store>(
        &self,
        out: &mut Output,
        machine: &Machine<S>,
        http: Option<&TcpListener>,
        resp: Option<&TcpListener>,
    ) -> anyhow::Result<()> {
        let address = |listener: Option<&TcpListener>| listener.map(TcpListener::local_addr).transpose();
        let (http, resp) = (address(http)?, address(resp)?);
        let shown = |address: Option<SocketAddr>| address.map_or("off".into(), |address| address.to_string());
        writeln!(out, "bates {} hands out numbers", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "  HTTP            {}", shown(http))?;
        writeln!(out, "  Redis protocol  {}", shown(resp))?;
        writeln!(out, "  data            {}", self.store)?;
        let file = self.file.map_or("built in".into(), |file| file.display().to_string());
        writeln!(out, "  configuration   {file}")?;
        writeln!(out, "try:")?;
        for line in self.tries(machine, http, resp) {
            writeln!(out, "  {line}")?;
        }
        out.flush()
    }

    /// A line for some of the series: the first over HTTP, the others by their keys.
    fn tries<S: Store>(
        &self,
        machine: &Machine<S>,
        http: Option<SocketAddr>,
        resp: Option<SocketAddr>,
    ) -> Vec<String> {
        let registry = machine.registry();
        let mut tries = Vec::new();
        if let Some(http) = http {
            // One without parameters is asked for in the shortest way.
            let simple = registry.entries().min_by_key(|entry| entry.parameters().count());
            tries.extend(simple.map(|entry| self.by_http(entry, http)));
        }
        if let Some(resp) = resp {
            let keyed = registry.entries().filter_map(|entry| self.by_key(entry, resp));
            tries.extend(keyed.take(TRIES_MAX - tries.len()));
        }
        tries
    }

    fn by_http(&self, entry: &Entry, http: SocketAddr) -> String {
        let header = if self.is_open { "" } else { " -H \"Authorization: Bearer $BATES_SECRET\"" };
        let scope: String = entry.parameters().flat_map(|name| ["&", name, "=", "X"]).collect();
        let name = entry.series().name();
        format!("curl -X POST{header} 'http://{http}/v1/series/{name}/next?count=3{scope}'")
    }

    fn by_key(&self, entry: &Entry, resp: SocketAddr) -> Option<String> {
        let password = if self.is_open { "" } else { " -a \"$BATES_SECRET\"" };
        let key = entry
            .parameters()
            .fold(entry.key()?.to_string(), |key, name| key.replace(&format!("{{{name}}}"), "X"));
        let (command, count) = if entry.counts_plainly() { ("INCR", "") } else { ("LPOP", " 3") };
        Some(format!("redis-cli -p {}{password} {command} {key}{count}", resp.port()))
    }
}
