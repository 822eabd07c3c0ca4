//! The server that is asked: its address, the secret, and what its errors mean for a command.

use std::io;
use std::time::Duration;

use anyhow::{Result, anyhow};
use bates_client::{Client, Error};
use clap::Args;

use crate::output::printable;

const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Which server is asked.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    #[arg(
        long,
        value_name = "URL",
        help = "The address of the server, whose secret is taken from BATES_SECRET [env: BATES_URL] \
                [default: http://127.0.0.1:8080]"
    )]
    url: Option<String>,
}

/// An error answer of a server; the command ends with the exit code of its error code.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {detail}")]
pub(crate) struct Refused {
    code: String,
    detail: String,
    pub(crate) exit_code: u8,
}

impl Refused {
    pub(super) fn new(code: &str, detail: &str) -> Self {
        let known = bates_core::Code::ALL.iter().find(|known| known.name() == code);
        let exit_code = known.map_or(2, |code| code.exit_code());
        Self { code: printable(code).into_owned(), detail: printable(detail).into_owned(), exit_code }
    }
}

impl ServerArgs {
    pub(super) fn url(&self) -> String {
        let given = self.url.clone().or_else(|| std::env::var("BATES_URL").ok());
        given.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned())
    }

    /// Does not retry: the person at the terminal decides that.
    pub(crate) fn client(&self) -> Result<Client> {
        let url = self.url();
        let builder = Client::builder(&*url).attempts(1).connect_timeout(ANSWER_TIMEOUT);
        let mut builder = builder.answer_timeout(ANSWER_TIMEOUT).total_time(ANSWER_TIMEOUT);
        if let Some(secret) = secret() {
            builder = builder.secret(secret);
        }
        builder.build().map_err(|error| match error {
            Error::Wrong { what: "secret", .. } => anyhow!("BATES_SECRET cannot be sent"),
            // The URL is not shown: it may hold a password.
            error if url.contains('@') => error.into(),
            _ => {
                let url = printable(&url);
                anyhow!("{url} is no address of a server: expected one such as http://127.0.0.1:8080")
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
        Ok(Error::Exhausted { detail, .. }) => Refused::new("exhausted", &detail).into(),
        Ok(Error::Refused { code, detail, .. }) => Refused::new(&code, &detail).into(),
        Ok(Error::Away { host, cause, .. } | Error::Distrusted { host, cause, .. }) => {
            let told = format!("no answer from {host}; is `bates serve` running there?");
            anyhow::Error::from(io::Error::other(cause.into_string())).context(told)
        }
        Ok(error @ Error::Strange { .. }) => {
            io::Error::other(printable(&error.to_string()).into_owned()).into()
        }
        Ok(error) => error.into(),
        Err(error) => error,
    }
}
