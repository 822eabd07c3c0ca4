//! The configuration: a file, the environment, flags and defaults. Read as a whole, so that every mistake is reported
//! at once, with its origin.
#![allow(clippy::doc_markdown, reason = "clap prints these comments as they are")]

mod access;
mod defense;
mod environment;
mod hint;
mod limit;
mod mistakes;
mod offers;
pub(crate) mod openg2p;
mod permissions;
mod reader;
mod retention;
mod series;
mod store;
mod store_choice;
mod tls;
mod tree;
mod write;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bates_core::{DocumentRetention, SeriesName, SeriesSpec};
use bates_pattern::nearest;
use bates_postgres::Address;
use bates_server::{Access, DefenseSettings, TlsFiles};
use clap::Args;
use uuid::Uuid;

pub(crate) use limit::{Limit, parse_limit};
use mistakes::Mistakes;
pub(crate) use offers::{Offer, OfferedPools, OfferedSinks, find_offer};
use reader::Reader;
pub(crate) use reader::address_or_off;
pub(crate) use series::SeriesPool;
pub(crate) use store::{OpenStore, StoreLocation};
use tree::{Node, Origin};
pub(crate) use write::{ConvertArgs, InitArgs};

/// The configuration without a file; `bates init` writes it.
pub(crate) const BUILT_IN: &str = include_str!("built_in.yaml");

/// Read if it exists and no other file is named.
pub(crate) const FILE: &str = "bates.yaml";

const KEYS: [&str; 32] = [
    "store",
    "store_id",
    "mark_file",
    "store_password_file",
    "store_connections",
    "store_timeout_ms",
    "http",
    "resp",
    "tls_certificate",
    "tls_key",
    "tls_client_ca",
    "plaintext",
    "secret",
    "secret_file",
    "tokens",
    "hosts",
    "openg2p_without_secret",
    "memory_max_mb",
    "scopes_in_memory_max",
    "connections_max",
    "connections_per_address_max",
    "wrong_secrets_max",
    "stranger_requests_max",
    "outbox_tries",
    "outbox_retention_hours",
    "outbox_undelivered_retention_hours",
    "operations_retention_days",
    "reconcile_minutes",
    "stop_timeout_s",
    "sinks",
    "pools",
    "series",
];

/// Where the configuration comes from.
#[derive(Debug, Default, Args)]
pub(crate) struct ConfigArgs {
    /// The configuration file [env: BATES_CONFIG] [default: bates.yaml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The configuration file of an OpenG2P id-generator; its variables ID_GENERATOR__…, DB_HOST, … apply as well
    #[arg(long, value_name = "FILE")]
    openg2p_config: Option<PathBuf>,

    /// The folder of the embedded store, if nothing else names a store [default: bates-data, beside the file]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) struct Config {
    pub(crate) store: StoreLocation,
    /// The only store that may be used.
    pub(crate) store_id: Option<Uuid>,
    /// Where the embedded store keeps the last commit whose answers were sent, outside its folder.
    pub(crate) mark_file: Option<PathBuf>,
    /// Whether a start may create the store, because nothing says that there is one.
    pub(crate) may_create_store: bool,
    /// `None`: off.
    pub(crate) http: Option<SocketAddr>,
    pub(crate) resp: Option<SocketAddr>,
    /// `None`: plain text.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) access: Arc<Access>,
    /// Names, beside localhost, under which requests without a secret are served.
    pub(crate) hosts: Vec<String>,
    pub(crate) defense: DefenseSettings,
    /// About how many scopes may be in memory.
    pub(crate) scopes_in_memory_max: usize,
    pub(crate) series: Vec<SeriesSpec>,
    pub(crate) sinks: BTreeMap<SeriesName, bates_sinks::SinkDescription>,
    pub(crate) offered_sinks: OfferedSinks,
    pub(crate) offered_pools: OfferedPools,
    pub(crate) pools: Vec<SeriesPool>,
    pub(crate) document_sources: BTreeMap<SeriesName, bates_sinks::DocumentSourceDescription>,
    pub(crate) attempts_max: u32,
    /// Delivered documents are removed after this time.
    pub(crate) retention: DocumentRetention,
    /// Records of the operations log are removed after this time. `None`: never.
    pub(crate) operations_retention: Option<Duration>,
    /// Serve the contract of the OpenG2P id-generator without a secret.
    pub(crate) openg2p_without_secret: bool,
    /// The database that the variables of an id-generator name; the store may be another one.
    pub(crate) id_generator_database: Option<Address>,
    /// `None`: gaps are found only on request.
    pub(crate) reconcile_period: Option<Duration>,
    /// How long a stop may take, from its signal on.
    pub(crate) stop_timeout: Duration,
    pub(crate) file: Option<PathBuf>,
}

impl ConfigArgs {
    pub(crate) fn load(&self, http: Option<&str>, resp: Option<&str>) -> Result<Config> {
        let (file, text) = self.read()?;
        let own_file = file.clone();
        let file = file.or_else(|| self.openg2p_config.clone());
        let shown = file.as_deref().unwrap_or(Path::new("the built-in configuration"));
        let tree = serde_saphyr::from_str(&text);
        let mut tree: Node = tree.map_err(|error| anyhow!("{}: {error}", shown.display()))?;
        let mut mistakes = Mistakes::default();
        let in_file = own_file.as_ref().and_then(|_| tree.get("store").cloned());
        let folder = store_choice::folder_of(own_file.as_deref())?;
        let id_generator_database = match &self.openg2p_config {
            Some(openg2p) => add_openg2p_series(&mut tree, openg2p, &mut mistakes)?,
            None => add_built_in_series(&mut tree).map(|()| None)?,
        };
        environment::overlay(&mut tree, &mut mistakes);
        overlay_flags(&mut tree, http, resp);
        let data = self.data.as_deref();
        let is_named = store_choice::settle(&mut tree, in_file.as_ref(), data, &folder, &mut mistakes)?;
        let mark_file = store_choice::read_mark_file(&tree, &folder, &mut mistakes);
        let may_create_store = file.is_none() && !is_named;
        match read(&tree, file.clone(), &mut mistakes) {
            Some(config) if mistakes.count() == 0 => {
                Ok(Config { mark_file, may_create_store, id_generator_database, ..config })
            }
            _ => bail!("{}", mistakes.report(shown)),
        }
    }

    fn read(&self) -> Result<(Option<PathBuf>, String)> {
        let named = self.config.clone().or_else(|| std::env::var_os("BATES_CONFIG").map(PathBuf::from));
        let file = named.or_else(|| Some(PathBuf::from(FILE)).filter(|file| file.exists()));
        match file {
            None if self.openg2p_config.is_some() => Ok((None, "{}".to_owned())),
            None => Ok((None, BUILT_IN.to_owned())),
            Some(file) => {
                let text = std::fs::read_to_string(&file);
                let text = text.with_context(|| format!("cannot read {}", file.display()))?;
                // An empty file is valid.
                let text = if text.trim().is_empty() { "{}".to_owned() } else { text };
                Ok((Some(file), text))
            }
        }
    }
}

fn overlay_flags(tree: &mut Node, http: Option<&str>, resp: Option<&str>) {
    for (flag, key, value) in [("--http", "http", http), ("--resp", "resp", resp)] {
        if let Some(value) = value {
            let origin = Origin::Flag(flag);
            *tree.get_or_insert(&[key.to_owned()], &origin) = Node::text(value, origin.clone());
        }
    }
}

/// A file without `series` keeps the built-in ones.
fn add_built_in_series(tree: &mut Node) -> Result<()> {
    if tree.entries().is_some() && tree.get("series").is_none() {
        let built_in: Node = serde_saphyr::from_str(BUILT_IN)?;
        let series = built_in.get("series").context("the built-in configuration has series")?;
        *tree.get_or_insert(&["series".to_owned()], &Origin::Flag("built in")) = series.clone();
    }
    Ok(())
}

/// Adds the ID types of an OpenG2P id-generator; its database is the store unless another one is named.
fn add_openg2p_series(tree: &mut Node, file: &Path, mistakes: &mut Mistakes) -> Result<Option<Address>> {
    let origin = Origin::Flag("--openg2p-config");
    let variables = std::env::vars().collect();
    let described: Node = serde_saphyr::from_str(&openg2p::series(file, &variables)?)?;
    for (name, node) in described.get("series").and_then(Node::entries).unwrap_or_default() {
        if tree.get("series").is_some_and(|series| series.get(name).is_some()) {
            let problem = format!("series {name:?} is an ID type here and in the configuration of Bates");
            mistakes.add(&origin, problem);
        }
        let mut node = node.clone();
        environment::relocate(&mut node, &origin);
        *tree.get_or_insert(&["series".to_owned(), name.clone()], &origin) = node;
    }
    let Some(store) = openg2p::database_url(&variables) else { return Ok(None) };
    let origin = Origin::Variable("DB_HOST, DB_PORT, …".to_owned());
    if tree.get("store").is_none() {
        *tree.get_or_insert(&["store".to_owned()], &origin) = Node::text(&store, origin.clone());
    }
    let address = Address::parse(&store).map_err(bates_postgres::OpenError::from);
    Ok(Some(address.context("invalid database in DB_HOST, DB_PORT, DB_NAME, DB_USER or DB_PASSWORD")?))
}

/// Refuses a configuration that is no map. Unknown keys are mistakes, too.
fn check_keys(tree: &Node, mistakes: &mut Mistakes) -> Option<()> {
    let all = KEYS.join(", ");
    let Some(entries) = tree.entries() else {
        mistakes.add(&tree.origin, format!("expected a map with {all}"));
        return None;
    };
    for (key, node) in entries.iter().filter(|(key, _)| !KEYS.contains(&&**key)) {
        let problem = match nearest(key, KEYS) {
            Some(near) => format!("unknown key {key}: did you mean {near}?"),
            None => format!("unknown key {key}; expected one of {all}"),
        };
        mistakes.add(&node.origin, problem);
    }
    Some(())
}

fn read(tree: &Node, file: Option<PathBuf>, mistakes: &mut Mistakes) -> Option<Config> {
    check_keys(tree, mistakes)?;
    let mut reader = Reader { tree, mistakes };
    let (store, store_id) = (store::read_store(&mut reader), store::read_store_id(&mut reader));
    let access = access::read_access(&mut reader);
    let http = reader.listen_address("http", "127.0.0.1:8080", access.as_ref());
    let resp = reader.listen_address("resp", "127.0.0.1:6380", access.as_ref());
    access::check_secret_lengths(&mut reader, &[http, resp]);
    let transport = tls::Transport::read(&mut reader);
    transport.check(&mut reader, [("http", http), ("resp", resp)]);
    let stop_seconds = reader.number("stop_timeout_s", 25, 1..=86_400);
    let series = series::read(tree.get("series"), mistakes);
    Some(Config {
        store: store?,
        store_id,
        mark_file: None,
        may_create_store: false,
        http,
        resp,
        tls: transport.files,
        access: Arc::new(access?),
        hosts: permissions::read_hosts(&mut Reader { tree, mistakes }),
        defense: defense::read_defense(&mut Reader { tree, mistakes }),
        scopes_in_memory_max: defense::read_scopes_max(&mut Reader { tree, mistakes }),
        series: series.specs,
        sinks: series.sinks,
        offered_sinks: offers::read_sinks(tree, mistakes),
        offered_pools: offers::read_pools(tree, mistakes),
        pools: series.pools,
        document_sources: series.document_sources,
        attempts_max: retention::read_attempts(&mut Reader { tree, mistakes }),
        retention: retention::read_retention(&mut Reader { tree, mistakes }),
        operations_retention: retention::read_operations_retention(&mut Reader { tree, mistakes }),
        openg2p_without_secret: Reader { tree, mistakes }.flag("openg2p_without_secret"),
        id_generator_database: None,
        reconcile_period: retention::read_reconcile_period(&mut Reader { tree, mistakes }),
        stop_timeout: Duration::from_secs(stop_seconds),
        file,
    })
}
