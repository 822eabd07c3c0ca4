//! The server that a command calls: its address, the secret, and its errors as exit codes.
#![allow(clippy::doc_markdown, rustdoc::bare_urls, reason = "clap prints these comments as they are")]

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use bates_client::{Client, Error};
use clap::Args;

use crate::output::sanitize;

const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Which server to ask.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The address of the server; its secret comes from BATES_SECRET [env: BATES_URL] [default: http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// A PEM file of authorities to trust besides those of the system, for https:// [env: BATES_CA_FILE]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// An error answer of a server; the command ends with the exit code of its error code.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {detail}")]
pub(crate) struct Refusal {
    code: String,
    detail: String,
    pub(crate) exit_code: u8,
}

impl Refusal {
    pub(super) fn new(code: &str, detail: &str) -> Self {
        let known = bates_core::ErrorCode::ALL.iter().find(|known| known.name() == code);
        let exit_code = known.map_or(2, |code| code.exit_code());
        Self { code: sanitize(code).into_owned(), detail: sanitize(detail).into_owned(), exit_code }
    }
}

impl ServerArgs {
    pub(super) fn url(&self) -> String {
        let given = self.url.clone().or_else(|| std::env::var("BATES_URL").ok());
        given.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned())
    }

    /// The authorities in the file, if one is named.
    pub(super) fn authority(&self) -> Result<Option<Vec<u8>>> {
        let file = self.ca_file.clone().or_else(|| std::env::var_os("BATES_CA_FILE").map(PathBuf::from));
        let read = |file: PathBuf| {
            let context = || format!("cannot read the authorities in {}", file.display());
            std::fs::read(&file).with_context(context)
        };
        file.map(read).transpose()
    }

    /// Does not retry: the person at the terminal decides that.
    pub(crate) fn client(&self) -> Result<Client> {
        let url = self.url();
        let builder = Client::builder(&*url).attempts(1).connect_timeout(ANSWER_TIMEOUT);
        let mut builder = builder.answer_timeout(ANSWER_TIMEOUT).total_time(ANSWER_TIMEOUT);
        if let Some(secret) = secret() {
            builder = builder.secret(secret);
        }
        if let Some(authority) = self.authority()? {
            builder = builder.authority(authority);
        }
        builder.build().map_err(|error| match error {
            error @ Error::BadArgument { what: "authority", .. } => {
                anyhow::Error::from(error).context("--ca-file, BATES_CA_FILE")
            }
            Error::BadArgument { what: "secret", .. } => {
                anyhow!("BATES_SECRET cannot be sent in a header: expected visible ASCII")
            }
            // The URL is not shown: it may hold a password.
            error if url.contains('@') => error.into(),
            _ => {
                let url = sanitize(&url);
                anyhow!("invalid server address {url}: expected one such as http://127.0.0.1:8080")
            }
        })
    }
}

pub(super) fn secret() -> Option<String> {
    std::env::var("BATES_SECRET").ok().filter(|secret| !secret.is_empty())
}

/// An unreachable server becomes an I/O error: exit code 3.
pub(crate) fn explain(error: anyhow::Error) -> anyhow::Error {
    match error.downcast() {
        Ok(Error::Exhausted { detail, .. }) => Refusal::new("exhausted", &detail).into(),
        Ok(Error::Refused { code, detail, .. }) => Refusal::new(&code, &detail).into(),
        Ok(Error::Untrusted { host, cause, .. }) => {
            let remedy = "name the file of its authority in --ca-file or BATES_CA_FILE";
            let problem = format!("untrusted certificate from {host}: {remedy}");
            anyhow::Error::from(io::Error::other(cause.into_string())).context(problem)
        }
        Ok(Error::NoAnswer { host, cause, .. }) => {
            let problem = format!("no answer from {host}; is `bates serve` running there?");
            anyhow::Error::from(io::Error::other(cause.into_string())).context(problem)
        }
        Ok(error @ Error::Unexpected { .. }) => io::Error::other(&*sanitize(&error.to_string())).into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}
