//! `bates token`: adds, lists, rotates and revokes callers on a running server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bates_api::{IssuedToken, Token, TokenGrant, TokenRequest};
use clap::{Args, Subcommand};

use super::list::{self, Format, shortened};
use super::server::ServerArgs;
use crate::config::{Limit, parse_limit};
use crate::output::{self, Output};

const PAGE: usize = 1_000;

/// Add, list, rotate and revoke tokens: callers with rights of their own
///
/// A token that is added here is kept in the store; every node accepts it within a second. Its secret is printed once,
/// and only its digest is kept. Needs the right admin; the shared secret has it. A caller gives a token at most the
/// rights, series, scopes, rate and quota that it has itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates token add acme --may read,take,define --series 'acme.*' --rate 5000/s --quota 10000000/day\n  \
    bates token add mail --may read,take --series document --scope project=PROJ,X9 --expires 90d\n  \
    bates token list\n  \
    bates token rotate acme --overlap 1h\n  \
    bates token revoke acme")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Add a token, and print its secret
    #[command(after_help = "Examples:\n  \
        bates token add acme --may read,take,define --series 'acme.*' --rate 5000/s\n  \
        BATES_SECRET=$(bates token add mail --may take --series document --secret-only)")]
    Add(AddArgs),
    /// List tokens, without their secrets
    #[command(after_help = "Examples:\n  bates token list\n  bates token list --json")]
    List(ListArgs),
    /// Give a token a new secret, and print it
    ///
    /// The secret before is accepted too until the overlap ends, so that clients can change one after the other.
    #[command(after_help = "Examples:\n  bates token rotate acme\n  bates token rotate acme --overlap 0s")]
    Rotate(RotateArgs),
    /// Revoke a token: its secrets are refused from now on
    #[command(after_help = "Examples:\n  bates token revoke acme")]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct AddArgs {
    /// The name of the caller
    name: String,

    /// Its rights: read, take, define, operate, admin
    #[arg(long, value_name = "RIGHTS", value_delimiter = ',', required = true)]
    may: Vec<String>,

    /// Only these series: names, or prefixes such as 'acme.*' [default: all]
    #[arg(long, value_name = "SERIES", value_delimiter = ',')]
    series: Vec<String>,

    /// Only scopes with these values of a parameter
    #[arg(long, value_name = "NAME=VALUE,…")]
    scope: Vec<String>,

    /// How many numbers it may take per second on each node, such as 5000/s
    #[arg(long, value_parser = |text: &str| parse_limit(Limit::Rate, text))]
    rate: Option<u64>,

    /// How many numbers it may take per day (UTC) on all nodes, such as 10000000/day
    #[arg(long, value_parser = |text: &str| parse_limit(Limit::Quota, text))]
    quota: Option<u64>,

    /// How many series it may define within its prefix [default: 100]
    #[arg(long, value_name = "COUNT")]
    series_max: Option<u64>,

    /// How many scopes a series that it defines may have [default: 10,000,000]
    #[arg(long, value_name = "COUNT")]
    scopes_max: Option<u64>,

    /// How many restricted words a series that it defines may have [default: 1,000]
    #[arg(long, value_name = "COUNT")]
    words_max: Option<u64>,

    /// When the token expires: after s, m, h or d, such as 90d [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    expires: Option<Duration>,

    #[command(flatten)]
    secret: SecretArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Print JSON, one token per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
struct RotateArgs {
    /// The name of the caller
    name: String,

    /// For how long the secret before is accepted too: s, m, h or d, up to 30d
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1d")]
    overlap: Duration,

    #[command(flatten)]
    secret: SecretArgs,
}

#[derive(Debug, Args)]
struct RevokeArgs {
    /// The name of the caller
    name: String,

    #[command(flatten)]
    server: ServerArgs,
}

/// How to print a new secret.
#[derive(Debug, Args)]
struct SecretArgs {
    /// Print only the secret, for a script
    #[arg(long, conflicts_with = "json")]
    secret_only: bool,

    /// Print JSON, with the secret
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

impl TokenArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        match &self.command {
            TokenCommand::Add(args) => args.run(out).await,
            TokenCommand::List(args) => args.run(out).await,
            TokenCommand::Rotate(args) => args.run(out).await,
            TokenCommand::Revoke(args) => args.run(out).await,
        }
    }
}

impl AddArgs {
    async fn run(&self, out: &mut Output) -> Result<()> {
        let series = (!self.series.is_empty()).then(|| self.series.clone());
        let Self { series_max, scopes_max, words_max, rate, quota, .. } = *self;
        let scope = parse_scope(&self.scope)?;
        let grant = TokenGrant {
            may: self.may.clone(),
            series,
            scope,
            series_max,
            scopes_max,
            words_max,
            rate,
            quota,
        };
        let expires_in_s = self.expires.map(|expires| expires.as_secs());
        let request = TokenRequest { name: self.name.clone(), grant, expires_in_s };
        let issued = self.secret.server.client()?.add_token(&request).await?;
        self.secret.print(out, &issued)
    }
}

impl ListArgs {
    async fn run(&self, out: &mut Output) -> Result<()> {
        let mut tokens = self.server.client()?.tokens().page(PAGE);
        let format = if self.json { Format::Json } else { Format::Table };
        let heads = ["NAME", "MAY", "SERIES", "SCOPE", "RATE", "QUOTA", "EXPIRES", "ORIGIN"];
        list::print(out, &mut tokens, None, format, heads, |token| vec![row(token)]).await
    }
}

fn row(token: Token) -> [String; 8] {
    let Token { name, grant, origin, expires, previous_ends, .. } = token;
    let scope = grant.scope.iter().map(|(name, values)| format!("{name}={}", values.join(",")));
    let limit = |limit: Option<u64>, unit| limit.map_or_else(String::new, |limit| format!("{limit}/{unit}"));
    let series = grant.series.map_or_else(|| "all".to_owned(), |series| series.join(","));
    let rotation = previous_ends.map_or_else(String::new, |ends| format!(", two secrets until {ends}"));
    let expires = expires.unwrap_or_else(|| "never".to_owned()) + &rotation;
    let scope = scope.collect::<Vec<_>>().join(" ");
    let (rate, quota) = (limit(grant.rate, "s"), limit(grant.quota, "day"));
    [name, grant.may.join(","), shortened(series), shortened(scope), rate, quota, expires, origin]
}

impl RotateArgs {
    async fn run(&self, out: &mut Output) -> Result<()> {
        let client = self.secret.server.client()?;
        let issued = client.rotate_token(&self.name, Some(self.overlap.as_secs())).await?;
        self.secret.print(out, &issued)
    }
}

impl RevokeArgs {
    async fn run(&self, out: &mut Output) -> Result<()> {
        let token = self.server.client()?.revoke_token(&self.name).await?;
        writeln!(
            out,
            "{} is revoked: every node refuses its secrets within a second",
            output::sanitize(&token.name)
        )
    }
}

impl SecretArgs {
    fn print(&self, out: &mut Output, issued: &IssuedToken) -> Result<()> {
        if self.json {
            return out.print_json(issued);
        }
        let secret = output::sanitize(&issued.secret);
        if self.secret_only {
            return writeln!(out, "{secret}");
        }
        let Token { name, expires, previous_ends, .. } = &issued.token;
        writeln!(out, "{secret}")?;
        let name = output::sanitize(name);
        output::print_note(&format!("this is the only time that the secret of {name} is shown: keep it now"));
        if let Some(ends) = previous_ends {
            output::print_note(&format!("the secret before is accepted until {}", output::sanitize(ends)));
        }
        if let Some(expires) = expires {
            output::print_note(&format!("the token expires at {}", output::sanitize(expires)));
        }
        Ok(())
    }
}

/// `project=PROJ,X9`: a parameter and its values.
fn parse_scope(rules: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
    let mut scope = BTreeMap::new();
    for rule in rules {
        let (name, values) = rule.split_once('=').with_context(|| {
            format!("--scope {rule:?}: expected a parameter and its values, such as project=PROJ,X9")
        })?;
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if name.is_empty() || values.iter().any(String::is_empty) {
            bail!("--scope {rule:?}: a name or a value is empty: expected one such as project=PROJ,X9");
        }
        if scope.insert(name.to_owned(), values).is_some() {
            bail!("--scope names the parameter {name:?} twice: give all its values at once");
        }
    }
    Ok(scope)
}

/// `90d`, `12h`, `30m` or `0s`.
fn parse_time(text: &str) -> Result<Duration, String> {
    let invalid = || "expected a whole number of s, m, h or d, such as 90d".to_owned();
    let at = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(invalid)?;
    let (count, unit) = text.split_at(at);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(invalid()),
    };
    let count: u64 = count.parse().map_err(|_| invalid())?;
    count.checked_mul(seconds).map(Duration::from_secs).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_whole_number_with_a_unit() {
        for (text, seconds) in [("0s", 0), ("90d", 90 * 86_400), ("12h", 43_200), ("30m", 1_800)] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "1", "d", "1w", "-1d", "1.5h", "99999999999999999999d", "213503982334602d"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_scope_names_each_parameter_once() {
        let scope = |rules: &[&str]| parse_scope(&rules.iter().map(ToString::to_string).collect::<Vec<_>>());
        let one = scope(&["project=PROJ,X9", "type=1"]).unwrap();
        assert_eq!(one["project"], ["PROJ", "X9"]);
        assert!(scope(&["=a"]).is_err() && scope(&["a="]).is_err() && scope(&["a=b,"]).is_err());
        assert!(scope(&["project"]).is_err() && scope(&["a=1", "a=2"]).is_err());
    }
}
