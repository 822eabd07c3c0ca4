//! The address of a database: what of it belongs to the driver, and what to TLS. Owns its redaction: an address may
//! hold a password and is only ever shown without it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::tls::Trust;

/// A server that is not there at all is not waited for any longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a database is, and how to get in.
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
}

impl Address {
    /// Reads `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…`, with the modes of `psql` and of the
    /// shared store. No problem that it tells quotes the address.
    pub(crate) fn parse(url: &str) -> Result<Self, Box<str>> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("it begins with postgres://".into());
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut file, mut rest) = (None, None, form_urlencoded::Serializer::new(String::new()));
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => file = Some(PathBuf::from(&*value)),
                _ => drop(rest.append_pair(&name, &value)),
            }
        }
        let config = format!("{base}?{}", rest.finish().replace('+', "%20")).parse::<Config>();
        let mut config = config.map_err(|_| "it could not be read")?;
        // What is behind the first @ of such a password would be shown as part of the host.
        if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if name.contains('@'))) {
            return Err("an @ in a password is written as %40".into());
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("it names no host".into());
        }
        let (ssl_mode, verified) = mode_named(mode.as_deref())?;
        config.ssl_mode(ssl_mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("bates");
        }
        let trust = match file {
            Some(file) => Trust::File(file),
            None if verified => Trust::System,
            None => Trust::Anybody,
        };
        Ok(Self { config, trust })
    }
}

/// The mode of the driver, and whether the server has to prove its name.
fn mode_named(name: Option<&str>) -> Result<(SslMode, bool), Box<str>> {
    match name {
        Some("disable") => Ok((SslMode::Disable, false)),
        None | Some("prefer") => Ok((SslMode::Prefer, false)),
        Some("require") => Ok((SslMode::Require, false)),
        Some("verify-ca" | "verify-full") => Ok((SslMode::Require, true)),
        Some(_) => Err("sslmode is disable, prefer, require, verify-ca or verify-full".into()),
    }
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        let ports = self.config.get_ports();
        for (at, host) in self.config.get_hosts().iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let port = ports.get(at).or(ports.first()).unwrap_or(&5432);
            match host {
                Host::Tcp(host) => write!(f, "{comma}{host}:{port}")?,
                Host::Unix(path) => write!(f, "{comma}{}:{port}", path.display())?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres"))
    }
}
