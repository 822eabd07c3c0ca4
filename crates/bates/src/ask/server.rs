//! The server that is asked: its address, the secret, and what its errors mean for a command.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::{Response, Uri};
use ureq::{Agent, Body};

use crate::output::printable;

/// The longest that a command waits for the first byte of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// The largest answer that is read whole.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

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

/// A server that said no: the command ends with the exit code of its error.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {detail}")]
pub(crate) struct Refused {
    code: String,
    detail: String,
    pub(crate) exit_code: u8,
}

#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

impl Refused {
    /// An error by its code, in a server's words.
    pub(super) fn new(code: &str, detail: &str) -> Self {
        let known = bates_core::Code::ALL.iter().find(|known| known.name() == code);
        let exit_code = known.map_or(2, |code| code.exit_code());
        Self { code: printable(code).into_owned(), detail: printable(detail).into_owned(), exit_code }
    }
}

impl ServerArgs {
    /// The address itself.
    pub(super) fn base(&self) -> anyhow::Result<String> {
        Ok(self.address("")?.to_string())
    }

    /// Asks with GET.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let answer = send(ureq::http::Request::get(self.address(path)?).body(())?)?;
        let body = answer.into_body().into_with_config().limit(ANSWER_BYTES_MAX).reader();
        serde_json::from_reader(body).context("the server's answer cannot be read")
    }

    /// Asks with POST, without a body.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let answer = send(ureq::http::Request::post(self.address(path)?).body(())?)?;
        let body = answer.into_body().into_with_config().limit(ANSWER_BYTES_MAX).reader();
        serde_json::from_reader(body).context("the server's answer cannot be read")
    }

    /// Asks with POST, with a body.
    pub(crate) fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &serde_json::Value,
    ) -> anyhow::Result<T> {
        let request = ureq::http::Request::post(self.address(path)?)
            .header("Content-Type", "application/json")
            .body(body.to_string())?;
        let body = send(request)?.into_body().into_with_config().limit(ANSWER_BYTES_MAX).reader();
        serde_json::from_reader(body).context("the server's answer cannot be read")
    }

    /// A request whose body is sent while its answer is read.
    pub(crate) fn stream(&self, path: &str) -> anyhow::Result<reqwest::RequestBuilder> {
        // Nobody else in the process has chosen one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build()?;
        let request = client.post(self.address(path)?.to_string());
        Ok(match std::env::var("BATES_SECRET") {
            Ok(secret) => request.bearer_auth(secret),
            Err(_) => request,
        })
    }

    /// Asks with POST for lines, and hands them over as they come.
    pub(super) fn lines(&self, path: &str, body: &serde_json::Value) -> anyhow::Result<impl Read + use<>> {
        let request = ureq::http::Request::post(self.address(path)?)
            .header("Accept", "text/plain")
            .header("Content-Type", "application/json");
        let answer = send(request.body(serde_json::to_string(body)?)?)?;
        Ok(answer.into_body().into_reader())
    }

    fn address(&self, path: &str) -> anyhow::Result<Uri> {
        let given = self.url.clone().or_else(|| std::env::var("BATES_URL").ok());
        let base = given.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
        let address = format!("{}{path}", base.trim_end_matches('/'));
        let uri: Option<Uri> = address.parse().ok().filter(|uri: &Uri| uri.scheme().is_some());
        uri.with_context(|| {
            format!(
                "{} is no address of a server: expected one such as http://127.0.0.1:8080",
                printable(&base)
            )
        })
    }
}

fn send(mut request: ureq::http::Request<impl ureq::AsSendBody>) -> anyhow::Result<Response<Body>> {
    if let Ok(secret) = std::env::var("BATES_SECRET") {
        let bearer =
            format!("Bearer {secret}").parse().map_err(|_| anyhow!("BATES_SECRET cannot be sent"))?;
        request.headers_mut().insert("Authorization", bearer);
    }
    let agent = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_recv_response(Some(ANSWER_TIMEOUT))
        .build()
        .new_agent();
    let shown = request.uri().clone();
    let answer = agent.run(request).map_err(|error| of_io(error, &shown))?;
    if answer.status().is_success() { Ok(answer) } else { Err(refused(answer)) }
}

/// A server that cannot be reached is the outside failing us, and not the call.
fn of_io(error: ureq::Error, uri: &Uri) -> anyhow::Error {
    let host = uri.authority().map(ToString::to_string).unwrap_or_default();
    let error = match error {
        ureq::Error::Io(error) => error,
        other => std::io::Error::other(other.to_string()),
    };
    anyhow::Error::from(error).context(format!("no answer from {host}; is `bates serve` running there?"))
}

fn refused(mut answer: Response<Body>) -> anyhow::Error {
    let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().unwrap_or_default();
    refusal(answer.status(), &text)
}

/// What a server's no means for a command.
pub(crate) fn refusal(status: ureq::http::StatusCode, text: &str) -> anyhow::Error {
    let Ok(Problem { code, detail }) = serde_json::from_str(text) else {
        return anyhow::Error::from(std::io::Error::other(format!(
            "the server answers {status}, and no reason that Bates gives"
        )));
    };
    Refused::new(&code, &detail).into()
}

/// A text as a part of a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
