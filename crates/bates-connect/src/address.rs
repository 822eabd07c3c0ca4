//! The address of a database: settings of the driver, and of TLS. Must never show the password.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use deadpool_postgres::{BuildError, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::tls::Trust;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Address {
    pub config: Config,
    pub trust: Trust,
}

/// Must never quote the text: it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(pub &'static str);

impl Address {
    /// Reads `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…`. The modes are those of `psql`:
    /// `disable`, `prefer`, `require`, `verify-ca` and `verify-full`; the last two both compare the name. Without a mode it
    /// is `verify-full`, or `prefer` for a loopback address or a socket of this machine.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(AddressError("expected an address that begins with postgres://"));
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
        let mut config: Config = format!("{base}?{}", rest.finish().replace('+', "%20"))
            .parse()
            // The error of the driver may quote the address.
            .map_err(|_| AddressError("the address is invalid"))?;
        // Otherwise the text after the first @ of the password would be shown as part of the host.
        if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if name.contains('@'))) {
            return Err(AddressError("write an @ in a password as %40"));
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(AddressError("the address has no host"));
        }
        let unknown = || AddressError("sslmode: expected disable, prefer, require, verify-ca or verify-full");
        let mode = mode.as_deref().unwrap_or(if is_local(&config) { "prefer" } else { "verify-full" });
        let (ssl_mode, verified) = ssl_mode(mode).ok_or_else(unknown)?;
        let trust = match file {
            Some(file) => Trust::File(file),
            None if verified => Trust::System,
            None => Trust::Any,
        };
        config.ssl_mode(ssl_mode);
        Ok(Self { config: with_defaults(config), trust })
    }

    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Connections are not tested before use: one that does not answer is replaced. The one that was used last is used next:
    /// its server process is in the caches of the processor.
    pub fn pool(&self, tls: MakeRustlsConnect, connections_max: usize) -> Result<Pool, BuildError> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), tls, config);
        Pool::builder(manager).max_size(connections_max).queue_mode(QueueMode::Lifo).build()
    }

    fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres")
    }
}

/// The mode, and whether to verify the certificate.
fn ssl_mode(mode: &str) -> Option<(SslMode, bool)> {
    match mode {
        "disable" => Some((SslMode::Disable, false)),
        "prefer" => Some((SslMode::Prefer, false)),
        "require" => Some((SslMode::Require, false)),
        "verify-ca" | "verify-full" => Some((SslMode::Require, true)),
        _ => None,
    }
}

/// Whether every host is this machine. Where `hostaddr` is given, the driver connects to that.
fn is_local(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(|address| address.to_canonical().is_loopback());
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
            let is_loopback = address.is_ok_and(|address| address.to_canonical().is_loopback());
            is_loopback || name.eq_ignore_ascii_case("localhost")
        }
        Host::Unix(_) => true,
    })
}

fn with_defaults(mut config: Config) -> Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_application_name().is_none() {
        config.application_name("bates");
    }
    config
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
        write!(f, "/{}", self.database())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown_even_in_an_error() {
        let address = Address::parse("postgres://bates:hunter2@db:6432/numbers?sslmode=require").unwrap();
        assert_eq!(address.to_string(), "postgres://bates@db:6432/numbers");
        assert!(address.has_password() && !format!("{address:?}").contains("hunter2"));
        for wrong in [
            "postgres://bates:hunter2@db:port/x",
            "mysql://bates:hunter2@db/x",
            "postgres://bates:hunter2@db/x?sslmode=hunter2",
            "postgres://bates:hunter2@db/x?nonsense=hunter2",
            "postgres://bates:a@hunter2@db/x",
            "postgres://",
        ] {
            let refused = Address::parse(wrong).unwrap_err();
            assert!(!format!("{refused} {refused:?}").contains("hunter2"), "{refused:?}");
        }
    }

    #[test]
    fn the_mode_and_the_file_decide_which_certificates_are_trusted() {
        for (query, ssl_mode, trust) in [
            ("", SslMode::Require, Trust::System),
            ("?sslrootcert=/ca.pem", SslMode::Require, Trust::File("/ca.pem".into())),
            ("?sslmode=prefer", SslMode::Prefer, Trust::Any),
            ("?sslmode=disable", SslMode::Disable, Trust::Any),
            ("?sslmode=require", SslMode::Require, Trust::Any),
            ("?sslmode=verify-full", SslMode::Require, Trust::System),
            ("?sslmode=require&sslrootcert=/ca.pem", SslMode::Require, Trust::File("/ca.pem".into())),
            ("?sslrootcert=%2Fca.pem&sslmode=verify-ca", SslMode::Require, Trust::File("/ca.pem".into())),
        ] {
            let address = Address::parse(&format!("postgres://db/x{query}")).unwrap();
            assert_eq!((address.config.get_ssl_mode(), address.trust), (ssl_mode, trust), "{query}");
        }
    }

    #[test]
    fn without_a_mode_only_this_machine_is_trusted_without_a_certificate() {
        for (hosts, is_verified) in [
            ("localhost", false),
            ("LOCALHOST:5433", false),
            ("127.0.0.1", false),
            ("127.8.8.8:6432", false),
            ("[::1]:5432", false),
            ("%2Frun%2Fpostgresql", false),
            ("localhost,127.0.0.1", false),
            ("db", true),
            ("10.0.0.7", true),
            ("localhost.example.com", true),
            ("localhost,db", true),
            ("[2001:db8::1]", true),
        ] {
            let url = format!("postgres://u@{hosts}/x");
            let trust = Address::parse(&url).unwrap().trust;
            assert_eq!(trust, if is_verified { Trust::System } else { Trust::Any }, "{url}");
        }
        for (address, trust) in [("127.0.0.1", Trust::Any), ("10.0.0.7", Trust::System)] {
            let url = format!("postgres://localhost/x?hostaddr={address}");
            assert_eq!(Address::parse(&url).unwrap().trust, trust, "{url}");
        }
        let disabled = Address::parse("postgres://db/x?sslmode=disable").unwrap();
        assert_eq!(disabled.config.get_ssl_mode(), SslMode::Disable, "an explicit mode wins");
    }

    #[test]
    fn settings_of_the_driver_reach_it() {
        let url = "postgresql://db/x?connect_timeout=3&application_name=a%20b&sslmode=disable";
        let config = Address::parse(url).unwrap().config;
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert_eq!(config.get_application_name(), Some("a b"));
    }
}
